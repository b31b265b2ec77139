"""What enhanced CT, MR and PET objects state beside geometry and values (PS3.3 A.36 to A.71)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydicom import Dataset

from numbat_imaging.phantoms.phantom import derived_uid

SOP_CLASSES = {
    "CT": "1.2.840.10008.5.1.4.1.1.2.1",
    "MR": "1.2.840.10008.5.1.4.1.1.4.1",
    "PT": "1.2.840.10008.5.1.4.1.1.130",
}
LEGACY_CLASSES = {
    "CT": "1.2.840.10008.5.1.4.1.1.2.2",
    "MR": "1.2.840.10008.5.1.4.1.1.4.4",
    "PT": "1.2.840.10008.5.1.4.1.1.128.1",
}
#: The functional group that says which kind of image a frame is.
FRAME_TYPES = {
    "CT": "CTImageFrameTypeSequence",
    "MR": "MRImageFrameTypeSequence",
    "PT": "PETFrameTypeSequence",
}


def _set(ds: Dataset, **values: Any) -> Dataset:
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


def code(value: str, scheme: str, meaning: str) -> Dataset:
    """A coded concept (PS3.3 8.8)."""
    return _set(Dataset(), CodeValue=value, CodingSchemeDesignator=scheme, CodeMeaning=meaning)


def describe_object(ds: Dataset, slices: Sequence[Dataset], *, legacy: bool) -> None:
    """Add the modules that hold for all frames: equipment, acquisition, kind of image."""
    first = slices[0]
    _set(
        ds,
        DeviceSerialNumber="1",
        SoftwareVersions="1",
        ReferringPhysicianName="",
        PositionReferenceIndicator="",
        AcquisitionContextSequence=[],
        BurnedInAnnotation="NO",
        LossyImageCompression="00",
        PresentationLUTShape="IDENTITY",
        ContentQualification="RESEARCH",
        AcquisitionNumber=1,
        AcquisitionDateTime=f"{first.AcquisitionDate}{first.AcquisitionTime}",
        AcquisitionDuration=60.0,
        PixelPresentation="MONOCHROME",
        VolumetricProperties="VOLUME",
        VolumeBasedCalculationTechnique="NONE",
        SynchronizationTrigger="NO TRIGGER",
        AcquisitionTimeSynchronized="Y",
        SynchronizationFrameOfReferenceUID=derived_uid("numbat clock", first.StudyInstanceUID),
    )
    if legacy:
        ds.BodyPartExamined = "HEAD"
        return
    if ds.Modality == "MR":
        _describe_mr(ds, first)
    if any("TriggerTime" in one for one in slices):
        _set(
            ds,
            CardiacSynchronizationTechnique="PROSPECTIVE",
            CardiacSignalSource="ECG",
            CardiacRRIntervalSpecified=900.0,
            CardiacBeatRejectionTechnique="NONE",
            LowRRValue="",
            HighRRValue="",
            IntervalsAcquired="",
            IntervalsRejected="",
        )
    if ds.Modality == "PT":
        _describe_pet(ds, first)


def _describe_mr(ds: Dataset, first: Dataset) -> None:
    _set(
        ds,
        ComplexImageComponent="MAGNITUDE",
        AcquisitionContrast="DIFFUSION" if "DiffusionBValue" in first else "UNKNOWN",
        ResonantNucleus="1H",
        KSpaceFiltering="NONE",
        MagneticFieldStrength=3.0,
        ApplicableSafetyStandardAgency="IEC",
        PulseSequenceName="phantom",
        MRAcquisitionType="2D",
        EchoPulseSequence="GRADIENT",
        MultiPlanarExcitation="NO",
        PhaseContrast="NO",
        TimeOfFlightContrast="NO",
        SteadyStatePulseSequence="NONE",
        EchoPlanarPulseSequence="YES",
        SaturationRecovery="NO",
        SpectrallySelectedSuppression="NONE",
        OversamplingPhase="NONE",
        GeometryOfKSpaceTraversal="RECTILINEAR",
        RectilinearPhaseEncodeReordering="LINEAR",
        SegmentedKSpaceTraversal="SINGLE",
        NumberOfKSpaceTrajectories=1,
        ProtocolName="phantom protocol",
    )


def _describe_pet(ds: Dataset, first: Dataset) -> None:
    drug = first.RadiopharmaceuticalInformationSequence[0]
    agent = _set(
        Dataset(),
        RadiopharmaceuticalAgentNumber=1,
        RadionuclideCodeSequence=[code("77004003", "SCT", "^18^Fluorine")],
        RadiopharmaceuticalCodeSequence=[code("35321007", "SCT", "Fluorodeoxyglucose F^18^")],
        AdministrationRouteCodeSequence=[code("47625008", "SCT", "Intravenous route")],
        RadiopharmaceuticalStartDateTime=f"{first.StudyDate}{drug.RadiopharmaceuticalStartTime}",
        RadionuclideTotalDose=drug.RadionuclideTotalDose,
        RadionuclideHalfLife=drug.RadionuclideHalfLife,
        RadionuclidePositronFraction="0.97",
    )
    _set(
        ds,
        RadiopharmaceuticalInformationSequence=[agent],
        CountsSource="EMISSION",
        DecayCorrected="YES",
        DecayCorrectionDateTime=f"{first.AcquisitionDate}{first.AcquisitionTime}",
        AttenuationCorrected="YES",
        ScatterCorrected="YES",
        DeadTimeCorrected="YES",
        GantryMotionCorrected="NO",
        PatientMotionCorrected="NO",
        CountLossNormalizationCorrected="YES",
        RandomsCorrected="YES",
        NonUniformRadialSamplingCorrected="YES",
        SensitivityCalibrated="YES",
        DetectorNormalizationCorrection="YES",
        TypeOfDetectorMotion="STATIONARY",
        AcquisitionStartCondition="MANU",
        AcquisitionTerminationCondition="TIME",
        TerminationTimeThreshold=120.0,
        DetectorGeometry="CYLINDRICAL_RING",
        TransverseDetectorSeparation=1.0,
        AxialDetectorDimension=4.0,
        CoincidenceWindowWidth="5",
        EnergyWindowRangeSequence=[
            _set(Dataset(), EnergyWindowLowerLimit="425", EnergyWindowUpperLimit="650")
        ],
        TableMotion="STATIC",
        TimeOfFlightInformationUsed="FALSE",
        RandomsCorrectionMethod="DLYD",
        AttenuationCorrectionSource="CT",
        AttenuationCorrectionTemporalRelationship="SIMULTANEOUS",
        ScatterCorrectionMethod="phantom",
        CollimatorType="NONE",
        ViewCodeSequence=[code("81654009", "SCT", "Coronal")],
    )


def fixed_groups(ds: Dataset) -> dict[str, Dataset]:
    """Functional groups that are the same in all frames of a phantom."""
    region = code("69536005", "SCT", "Head")
    groups = {
        "FrameAnatomySequence": _set(
            Dataset(), FrameLaterality="U", AnatomicRegionSequence=[region]
        )
    }
    return groups | {"MR": _mr, "CT": _ct, "PT": _pet}[ds.Modality](ds)


def _mr(ds: Dataset) -> dict[str, Dataset]:
    timing = _set(
        Dataset(),
        RepetitionTime=float(ds.RepetitionTime),
        FlipAngle=float(ds.FlipAngle),
        EchoTrainLength=1,
        RFEchoTrainLength=0,
        GradientEchoTrainLength=1,
        SpecificAbsorptionRateSequence=[
            _set(
                Dataset(),
                SpecificAbsorptionRateDefinition="IEC_WHOLE_BODY",
                SpecificAbsorptionRateValue=0.1,
            )
        ],
        GradientOutputType="DB_DT",
        GradientOutput=0.1,
        OperatingModeSequence=[
            _set(Dataset(), OperatingModeType=kind, OperatingMode="IEC_NORMAL")
            for kind in ("STATIC FIELD", "RF", "GRADIENT")
        ],
    )
    geometry = _set(
        Dataset(),
        InPlanePhaseEncodingDirection="COLUMN",
        MRAcquisitionFrequencyEncodingSteps=ds.Columns,
        MRAcquisitionPhaseEncodingStepsInPlane=ds.Rows,
        MRAcquisitionPhaseEncodingStepsOutOfPlane=1,
        PercentSampling=100.0,
        PercentPhaseFieldOfView=100.0,
    )
    modifier = _set(
        Dataset(),
        InversionRecovery="NO",
        FlowCompensation="NONE",
        Spoiling="NONE",
        T2Preparation="NO",
        SpectrallySelectedExcitation="NONE",
        SpatialPresaturation="NONE",
        PartialFourier="NO",
        ParallelAcquisition="NO",
    )
    imaging = _set(
        Dataset(),
        MagnetizationTransfer="NONE",
        BloodSignalNulling="NO",
        Tagging="NONE",
        TransmitterFrequency=123.2,
        PixelBandwidth=2000.0,
    )
    receive = _set(
        Dataset(),
        ReceiveCoilName="phantom",
        ReceiveCoilManufacturerName="",
        ReceiveCoilType="VOLUME",
        QuadratureReceiveCoil="YES",
    )
    transmit = _set(
        Dataset(),
        TransmitCoilName="phantom",
        TransmitCoilManufacturerName="",
        TransmitCoilType="BODY",
    )
    return {
        "MRTimingAndRelatedParametersSequence": timing,
        "MRFOVGeometrySequence": geometry,
        "MRModifierSequence": modifier,
        "MRImagingModifierSequence": imaging,
        "MRReceiveCoilSequence": receive,
        "MRTransmitCoilSequence": transmit,
        "MRAveragesSequence": _set(Dataset(), NumberOfAverages=1.0),
    }


def _ct(ds: Dataset) -> dict[str, Dataset]:
    details = _set(
        Dataset(),
        RotationDirection="CW",
        RevolutionTime=0.5,
        SingleCollimationWidth=1.0,
        TotalCollimationWidth=16.0,
        TableHeight="150",
        GantryDetectorTilt="0",
        DataCollectionDiameter="500",
    )
    position = _set(
        Dataset(),
        TablePosition=0.0,
        DataCollectionCenterPatient=[0.0, 0.0, 0.0],
        ReconstructionTargetCenterPatient=[0.0, 0.0, 0.0],
    )
    reconstruction = _set(
        Dataset(),
        ReconstructionAlgorithm="FILTER_BACK_PROJ",
        ConvolutionKernel=str(ds.ConvolutionKernel),
        ConvolutionKernelGroup="BRAIN",
        ReconstructionDiameter="500",
        ReconstructionAngle=360.0,
        ReconstructionPixelSpacing=[float(x) for x in ds.PixelSpacing],
        ImageFilter="NONE",
    )
    exposure = _set(
        Dataset(),
        ExposureTimeInms=500.0,
        XRayTubeCurrentInmA=200.0,
        ExposureInmAs=100.0,
        ExposureModulationType="NONE",
    )
    beam = _set(
        Dataset(),
        KVP=str(ds.KVP),
        FocalSpots=[1.0],
        FilterType="NONE",
        FilterMaterial="MIXED",
        CalciumScoringMassFactorPatient=1.0,
    )
    return {
        "IrradiationEventIdentificationSequence": _set(
            Dataset(), IrradiationEventUID=derived_uid("numbat exposure", ds.StudyInstanceUID)
        ),
        "CTAcquisitionTypeSequence": _set(
            Dataset(),
            AcquisitionType="SEQUENCED",
            ConstantVolumeFlag="NO",
            FluoroscopyFlag="NO",
        ),
        "CTAcquisitionDetailsSequence": details,
        "CTTableDynamicsSequence": _set(Dataset(), TableSpeed=10.0),
        "CTPositionSequence": position,
        "CTGeometrySequence": _set(
            Dataset(), DistanceSourceToDetector="1000", DistanceSourceToDataCollectionCenter=500.0
        ),
        "CTReconstructionSequence": reconstruction,
        "CTExposureSequence": exposure,
        "CTXRayDetailsSequence": beam,
    }


def _pet(ds: Dataset) -> dict[str, Dataset]:
    return {
        "RadiopharmaceuticalUsageSequence": _set(Dataset(), RadiopharmaceuticalAgentNumber=1),
        "PETFrameAcquisitionSequence": _set(
            Dataset(),
            TableHeight="150",
            GantryDetectorTilt="0",
            GantryDetectorSlew="0",
            DataCollectionDiameter="500",
        ),
        "PETDetectorMotionDetailsSequence": _set(
            Dataset(), RotationDirection="CW", RevolutionTime=1.0
        ),
        "PETPositionSequence": _set(
            Dataset(),
            TablePosition=0.0,
            DataCollectionCenterPatient=[0.0, 0.0, 0.0],
            ReconstructionTargetCenterPatient=[0.0, 0.0, 0.0],
        ),
        "PETFrameCorrectionFactorsSequence": _set(
            Dataset(),
            PrimaryPromptsCountsAccumulated=1000000,
            SliceSensitivityFactor="1",
            DecayFactor="1",
            ScatterFractionFactor="0.3",
            DeadTimeFactor="1",
        ),
        "PETReconstructionSequence": _set(
            Dataset(),
            ReconstructionType="3D",
            ReconstructionAlgorithm="FILTER_BACK_PROJ",
            IterativeReconstructionMethod="NO",
            ReconstructionDiameter="500",
        ),
    }

"""Files to headers: what is DICOM, what each file holds, and an account of every file."""

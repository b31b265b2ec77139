"""`python -m numbat_gates` is `numbat-gates`."""

from numbat_gates.cli import main

if __name__ == "__main__":
    main()

"""The conversion of a database of version 0.1.0, revision 0021."""

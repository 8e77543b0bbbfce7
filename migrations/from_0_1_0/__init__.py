"""The conversion of a database of version 0.1.0, revision 0021, to the tables of the schema `core`."""

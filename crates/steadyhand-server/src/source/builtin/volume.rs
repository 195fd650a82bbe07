//! `volume`: how loud this machine is. Reads and sets it through a program that the system has.

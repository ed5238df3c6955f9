module runwire.dev/go

go 1.19

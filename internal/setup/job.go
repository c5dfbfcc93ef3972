package setup

var jobFiles = []string{ncclConf}

var jobChecks []Check

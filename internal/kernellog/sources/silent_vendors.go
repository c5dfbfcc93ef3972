package main

// quietOfVendors are those of drivers other than mlx4 and mlx5.
var quietOfVendors = []quiet{}

// A scan through the client of openapi-generator for Go: order, wait, read every item.
package main

import (
	"context"
	"fmt"
	"os"

	openapi "example.com/farescan/client"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	url, key, from, to := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	config := openapi.NewConfiguration()
	config.Servers = openapi.ServerConfigurations{{URL: url}}
	config.AddDefaultHeader("x-api-key", key)
	scans := openapi.NewAPIClient(config).ScansAPI
	ctx := context.Background()

	fields := openapi.NewSearchFields()
	fields.SetFromAirport("TLV")
	fields.SetToAirport("LHR")
	fields.SetCurrency("USD")
	dates := openapi.DateRangeAsSweepValue(openapi.NewDateRange(from, to))
	sweep := openapi.NewSweep()
	sweep.SetDepartureDate(dates)
	order := openapi.NewScanRequest("flights/oneway", *fields)
	order.SetSweep(*sweep)

	scan, _, err := scans.CreateScan(ctx).ScanRequest(*order).Execute()
	check(err)
	for wait := 0; wait < 10 && !scan.FinishedAt.IsSet() || scan.FinishedAt.Get() == nil; wait++ {
		scan, _, err = scans.GetScan(ctx, scan.Id).Wait(30).Execute()
		check(err)
	}
	page, _, err := scans.ListItems(ctx, scan.Id).Execute()
	check(err)
	if len(page.Data) != 3 || scan.Items.Total != 3 {
		check(fmt.Errorf("%d items of %d", len(page.Data), scan.Items.Total))
	}
	best := scan.Best.Get()
	fmt.Printf("%d items, best %v %s\n", len(page.Data), best.Price, best.Currency)
}

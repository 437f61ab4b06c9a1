// Tells what fargo finds, as a line of JSON after "SEEN " whenever it changes.
//
// It gives the fields of an instance and makes no URL of them, so the port is chosen here as its
// callers have to: the secure one if it is enabled.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hudl/fargo"
)

type seen struct {
	Host     string                 `json:"host"`
	Port     int                    `json:"port"`
	Secure   bool                   `json:"secure"`
	Metadata map[string]interface{} `json:"metadata"`
	Status   fargo.StatusType       `json:"status"`
}

func seenOf(instance *fargo.Instance) seen {
	port := instance.Port
	if instance.SecurePortEnabled {
		port = instance.SecurePort
	}
	return seen{
		Host:     instance.HostName,
		Port:     port,
		Secure:   instance.SecurePortEnabled,
		Metadata: instance.Metadata.GetMap(),
		Status:   instance.Status,
	}
}

func main() {
	url, apps := os.Args[1], strings.Split(os.Args[2], ",")
	refreshSeconds, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	connection := fargo.NewConn(url)
	connection.Timeout = 10 * time.Second
	connection.PollInterval = time.Duration(refreshSeconds) * time.Second
	sources := map[string]*fargo.AppSource{}
	for _, app := range apps {
		sources[app] = connection.NewAppSource(strings.ToUpper(app), true)
	}
	before := ""
	for {
		all := map[string][]seen{}
		for _, app := range apps {
			all[app] = []seen{}
			if latest := sources[app].Latest(); latest != nil {
				for _, instance := range latest.Instances {
					all[app] = append(all[app], seenOf(instance))
				}
			}
		}
		now, err := json.Marshal(map[string]interface{}{"fargo": all})
		if err != nil {
			panic(err)
		}
		if string(now) != before {
			fmt.Printf("SEEN %s\n", now)
			before = string(now)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

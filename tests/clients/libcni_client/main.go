// Copyright (c) 2026, The nodenet.cni authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// libcni_client carries out one request, read as JSON from stdin, through the libcni that runtimes are built with.
// It prints the result of add, and ends with code 1 and the error on stderr where libcni returns one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/containernetworking/cni/libcni"
)

type request struct {
	Command      string
	Conflist     json.RawMessage
	Path         []string
	Cache        string
	Container    string
	Netns        string
	Ifname       string
	Args         [][2]string
	Capabilities map[string]interface{}
}

func answer(wanted request) (interface{}, error) {
	list, err := libcni.ConfListFromBytes(wanted.Conflist)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	client := libcni.NewCNIConfigWithCacheDir(wanted.Path, wanted.Cache, nil)
	attachment := &libcni.RuntimeConf{
		ContainerID:    wanted.Container,
		NetNS:          wanted.Netns,
		IfName:         wanted.Ifname,
		Args:           wanted.Args,
		CapabilityArgs: wanted.Capabilities,
	}
	switch wanted.Command {
	case "add":
		return client.AddNetworkList(ctx, list, attachment)
	case "check":
		return nil, client.CheckNetworkList(ctx, list, attachment)
	case "del":
		return nil, client.DelNetworkList(ctx, list, attachment)
	case "validate":
		return client.ValidateNetworkList(ctx, list)
	case "cached":
		return client.GetNetworkListCachedResult(list, attachment)
	}
	return nil, errors.New("no such command: " + wanted.Command)
}

func main() {
	var wanted request
	err := json.NewDecoder(os.Stdin).Decode(&wanted)
	if err == nil {
		var result interface{}
		if result, err = answer(wanted); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(result)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Command example reads the values of a snapshot. README.md shows this program.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/nuthatch-kv/nuthatch/bindings/go/snapshot"
)

func main() {
	users, err := snapshot.Open(os.Args[1])
	if err != nil {
		log.Fatal(err) // what happened, where, and what to do
	}
	defer users.Close()

	name, ok, err := users.GetString("user:1.name")
	if err != nil {
		log.Fatal(err) // the value has another type, or the file is damaged
	}
	fmt.Println(name, ok)

	// Many keys at once are several times faster than one by one.
	values := make([]snapshot.Value, 2)
	if err := users.GetMany([]string{"user:1.age", "user:9.age"}, values); err != nil {
		log.Fatal(err)
	}
	age, _ := values[0].AsInt64()
	fmt.Println(age, values[1].Exists())

	// A key of bytes, without a copy.
	tags, _, err := users.GetStrings(snapshot.Key([]byte("user:1.tags")))
	fmt.Println(tags, err)

	for entry, err := range users.All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Key, entry.Value)
	}
}

// Reads a log in a folder with Go's own packages for such logs, and proves it: every signature of its checkpoints, every
// entry, and that each earlier checkpoint is of the same log.
//
// usage: check-log FOLDER LOG-VERIFIER-KEY WITNESS-VERIFIER-KEY EARLIER-CHECKPOINT...
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	folder, logKey, witnessKey := os.Args[1], os.Args[2], os.Args[3]
	log, err := note.NewVerifier(logKey)
	must(err)
	witness, err := newWitness(witnessKey)
	must(err)
	tree, signers := open(filepath.Join(folder, "checkpoint"), log, witness)
	if signers != 2 {
		must(fmt.Errorf("the checkpoint has %d of the 2 signatures", signers))
	}
	reader := tlog.TileHashReader(tree, &tiles{folder})
	for _, path := range os.Args[4:] {
		earlier, _ := open(path, log, witness)
		proof, err := tlog.ProveTree(tree.N, earlier.N, reader)
		must(err)
		must(tlog.CheckTree(proof, tree.N, tree.Hash, earlier.N, earlier.Hash))
	}
	for index, entry := range entries(folder, tree.N) {
		proof, err := tlog.ProveRecord(tree.N, int64(index), reader)
		must(err)
		must(tlog.CheckRecord(proof, tree.N, tree.Hash, int64(index), tlog.RecordHash(entry)))
	}
	fmt.Printf("%d entries, %d earlier checkpoints\n", tree.N, len(os.Args)-4)
}

// open returns the tree of a checkpoint, and how many of the keys signed it.
func open(path string, verifiers ...note.Verifier) (tlog.Tree, int) {
	text, err := os.ReadFile(path)
	must(err)
	opened, err := note.Open(text, note.VerifierList(verifiers...))
	must(err)
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	hash, err := tlog.ParseHash(lines[2])
	must(err)
	if lines[0] != verifiers[0].Name() {
		must(fmt.Errorf("the origin is %s", lines[0]))
	}
	return tlog.Tree{N: size, Hash: hash}, len(opened.Sigs)
}

// entries returns the entries of all bundles.
func entries(folder string, size int64) [][]byte {
	var found [][]byte
	for int64(len(found)) < size {
		n := int64(len(found)) / 256
		width := int(min(256, size-n*256))
		bundle, err := os.ReadFile(filepath.Join(folder, strings.Replace(tilePath(tlog.Tile{H: 8, L: 0, N: n, W: width}), "tile/0/", "tile/entries/", 1)))
		must(err)
		for len(bundle) > 0 {
			length := int(binary.BigEndian.Uint16(bundle))
			found = append(found, bundle[2:2+length])
			bundle = bundle[2+length:]
		}
	}
	return found
}

// tiles reads tiles of height 8 as tlog-tiles names them.
type tiles struct{ folder string }

func (t *tiles) Height() int { return 8 }

func (t *tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var data [][]byte
	for _, tile := range wanted {
		bytes, err := os.ReadFile(filepath.Join(t.folder, tilePath(tile)))
		if err != nil {
			return nil, err
		}
		data = append(data, bytes)
	}
	return data, nil
}

func (t *tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func tilePath(tile tlog.Tile) string {
	return strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
}

// witness verifies cosignatures of version 1.
type witness struct {
	name string
	id   uint32
	key  ed25519.PublicKey
}

func newWitness(text string) (*witness, error) {
	parts := strings.SplitN(text, "+", 3)
	typed, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(typed) != 33 || typed[0] != 4 {
		return nil, fmt.Errorf("the key of the witness is not of type 4")
	}
	id := sha256.Sum256(append([]byte(parts[0]+"\n"), typed...))
	return &witness{parts[0], binary.BigEndian.Uint32(id[:]), typed[1:]}, nil
}

func (w *witness) Name() string    { return w.name }
func (w *witness) KeyHash() uint32 { return w.id }
func (w *witness) Verify(text, signature []byte) bool {
	if len(signature) != 72 {
		return false
	}
	signed := fmt.Sprintf("cosignature/v1\ntime %d\n%s", binary.BigEndian.Uint64(signature), text)
	return ed25519.Verify(w.key, []byte(signed), signature[8:])
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

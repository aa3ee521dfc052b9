// Command foreign is a provider orchestrator, written from the text of the contract alone. Its machines are OpenSSH servers in
// Linux namespaces of this host. README.md lists its faults and its forms.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var (
	faultFlag = flag.String("fault", "", "one fault of README.md")
	formFlag  = flag.String("form", "", "forms of README.md, with commas between them")
	port      = flag.Int("port", 8080, "port of the API; 0: any free port")
	bootMs    = flag.Int("boot-ms", 1500, "duration of a boot, in addition to that of sshd")
	stopMs    = flag.Int("stop-ms", 500, "duration of STOPPING")
	destroyMs = flag.Int("destroy-ms", 500, "duration of DESTROYING")
	volumeMs  = flag.Int("volume-ms", 300, "duration of a step of a volume")
	stateDir  = flag.String("state", "", "folder of the disks and the records; default: a new one, removed at the end")
	list      = flag.String("list", "", "print the names of `faults or forms`")
)

func fault(name string) bool { return *faultFlag == name }

func form(name string) bool {
	for _, f := range strings.Split(*formFlag, ",") {
		if f == name {
			return true
		}
	}
	return false
}

func main() {
	flag.Parse()
	if *list != "" {
		names := map[string][]string{"faults": faultNames, "forms": formNames}[*list]
		fmt.Println(strings.Join(names, "\n"))
		return
	}
	checkNames()
	if os.Getenv("PROVIDER_API_KEY") == "" {
		log.Fatal("PROVIDER_API_KEY must hold the key of the marketplace, or several with commas between them")
	}
	temporary := *stateDir == ""
	if temporary {
		folder, err := os.MkdirTemp("", "foreign-go-")
		if err != nil {
			log.Fatal(err)
		}
		*stateDir = folder
	}
	folder, err := filepath.Abs(*stateDir)
	if err != nil {
		log.Fatal(err)
	}
	s := newServer(folder)
	s.resume()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	scheme := "http"
	if form("https") {
		scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{certificate(filepath.Join(folder, "ca.pem"))},
			NextProtos:   []string{"h2", "http/1.1"},
		})
	}
	fmt.Printf("%s://%s/v1\n", scheme, listener.Addr())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if err := http.Serve(listener, s); !errors.Is(err, net.ErrClosed) {
			log.Fatal(err)
		}
	}()
	if <-signals == syscall.SIGHUP {
		s.restart(listener)
	}
	s.end(temporary)
}

// restart replaces this process by a new one at the same port; machines keep running, and the new one reads the records.
func (s *server) restart(listener net.Listener) {
	s.mu.Lock()
	_, chosen, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	arguments := []string{os.Args[0]}
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(a, "--port=") && !strings.HasPrefix(a, "--state=") {
			arguments = append(arguments, a)
		}
	}
	arguments = append(arguments, "--port="+chosen, "--state="+s.folder)
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, arguments, os.Environ())
	}
	log.Fatal(err)
}

// end kills every machine, also those that a fault leaked.
func (s *server) end(temporary bool) {
	s.mu.Lock()
	disks, _ := filepath.Glob(filepath.Join(s.folder, "disks", "*"))
	for _, disk := range disks {
		machine{disk: disk}.kill()
	}
	if temporary || strings.Contains(filepath.Base(s.folder), "foreign-go-") {
		os.RemoveAll(s.folder)
	}
}

// certificate makes a certificate for 127.0.0.1 that is its own authority, and writes it to a file. A restart reads it again.
func certificate(file string) tls.Certificate {
	if kept, err := tls.LoadX509KeyPair(file, file); err == nil {
		return kept
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "127.0.0.1"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(0, 1, 0),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	keyBytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		log.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyBytes})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

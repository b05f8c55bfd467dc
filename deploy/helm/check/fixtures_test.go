package check

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// fixtures are the files of Secrets, and what publishers have published.
type fixtures struct {
	t        *testing.T
	folder   string
	files    map[string][]byte
	trustKey []byte
}

func newFixtures(t *testing.T, folder string) *fixtures {
	t.Helper()
	certificate, key := selfSigned(t)
	files := map[string][]byte{
		"password": []byte("sesame"),
		"users.acl": []byte("user default off\nuser web on >sesame allkeys +@all\n" +
			"user node on >sesame -@all +cluster|transfer\n"),
		"node-password": []byte("sesame"),
		"tokens":        []byte("token reader read >sesame\n"),
		"tls.crt":       certificate,
		"tls.key":       key,
		"ca.crt":        certificate,
	}
	return &fixtures{t, folder, files, nil}
}

// write writes all files: a pod mounts Secrets of one kind each, and ignores the other files.
func (fixtures *fixtures) write(folder string) {
	for name, text := range fixtures.files {
		project(fixtures.t, folder, name, text)
	}
}

// publish builds a snapshot and publishes it with a signature.
func (fixtures *fixtures) publish() {
	fixtures.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fixtures.t.Fatal(err)
	}
	fixtures.trustKey = publicPEM(fixtures.t, public)
	sign := filepath.Join(fixtures.folder, "sign.pem")
	writeFile(fixtures.t, sign, privatePEM(fixtures.t, private))
	rows := filepath.Join(fixtures.folder, "rows.jsonl")
	writeFile(fixtures.t, rows, []byte("{\"key\": \"user:1.name\", \"value\": \"Ada\"}\n"))
	writeFile(fixtures.t, filepath.Join(fixtures.folder, "input/users.csv"),
		[]byte("id,name\n1,Ada\n"))
	snapshot := filepath.Join(fixtures.folder, "users.nut")
	fixtures.nuthatch("build", rows, "-o", snapshot, "--meta", "batch=1", "--quiet")
	destination := filepath.Join(fixtures.folder, "published/users")
	fixtures.nuthatch("publish", snapshot, destination, "--sign-key", sign, "--quiet")
}

func (fixtures *fixtures) nuthatch(args ...string) string {
	fixtures.t.Helper()
	output, err := exec.Command(program(fixtures.t), args...).CombinedOutput()
	if err != nil {
		fixtures.t.Fatalf("nuthatch %v: %v\n%s", args, err, output)
	}
	return string(output)
}

func publicPEM(t *testing.T, key ed25519.PublicKey) []byte {
	t.Helper()
	bytes, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: bytes})
}

func privatePEM(t *testing.T, key any) []byte {
	t.Helper()
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})
}

// selfSigned returns a certificate, which is its own authority, and its key.
func selfSigned(t *testing.T) ([]byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), privatePEM(t, key)
}

package snapshot

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	frameMagic        = "\x28\xb5\x2f\xfd"
	frameChecksumLen  = 4
	blockHeadLen      = 3
	blockRepeatedByte = 1
	blockReserved     = 3
	dictionaryMagic   = 0xec30a437
)

// decompressor decompresses the values of one file. Any number of goroutines can use it.
type decompressor struct {
	decoder      *zstd.Decoder
	dictionaryID uint32 // 0 without a dictionary
}

// plainDecompressor returns the decompressor for files without a dictionary.
var plainDecompressor = sync.OnceValues(func() (*decompressor, error) {
	return newDecompressor(nil)
})

// newDecompressor prepares a dictionary, which may be empty.
func newDecompressor(dictionary []byte) (*decompressor, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true)}
	id := uint32(0)
	if len(dictionary) > 0 {
		if len(dictionary) < 8 || binary.LittleEndian.Uint32(dictionary) != dictionaryMagic {
			return nil, zstd.ErrMagicMismatch
		}
		id = binary.LittleEndian.Uint32(dictionary[4:])
		options = append(options, zstd.WithDecoderDicts(append([]byte(nil), dictionary...)))
	}
	decoder, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	return &decompressor{decoder: decoder, dictionaryID: id}, nil
}

// decompress returns the content of a compressed value.
func (f *file) decompress(r *record) (string, error) {
	content, err := f.decompressor.decompress(bytesOf(r.stored))
	if err != nil {
		return "", corrupt(f.path, f.header.data.offset+r.storedAt,
			"one zstd frame of at most 16 MiB", err.Error())
	}
	return stringOf(content), nil
}

// decompress returns the content of a frame, at a multiple of 8 bytes.
func (d *decompressor) decompress(frame []byte) ([]byte, error) {
	var head zstd.Header
	if len(frame) < 4 || string(frame[:4]) != frameMagic {
		return nil, fmt.Errorf("%d other bytes", len(frame))
	}
	if err := head.Decode(frame); err != nil {
		return nil, err
	}
	if !head.HasFCS {
		return nil, fmt.Errorf("a frame without the length of its content")
	}
	if head.FrameContentSize > maxDecompressedLen {
		return nil, fmt.Errorf("a frame of %d bytes", head.FrameContentSize)
	}
	if !isOneFrame(frame, head.HeaderSize, head.HasCheckSum) {
		return nil, fmt.Errorf("an incomplete frame, or more than a frame")
	}
	if d.dictionaryID != 0 && head.DictionaryID == 0 {
		frame = withDictionaryID(frame, d.dictionaryID)
	}
	content, err := d.decoder.DecodeAll(frame, alignedBytes(int(head.FrameContentSize)))
	if err == nil && uint64(len(content)) != head.FrameContentSize {
		err = fmt.Errorf("a frame of %d bytes that claims %d", len(content),
			head.FrameContentSize)
	}
	return content, err
}

// isOneFrame returns whether a frame with a head of this length ends with the bytes.
func isOneFrame(frame []byte, headLen int, hasChecksum bool) bool {
	at, isLast := headLen, false
	for !isLast {
		if len(frame)-at < blockHeadLen {
			return false
		}
		head := int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16
		length := head >> 3
		isLast = head&1 != 0
		switch head >> 1 & 3 {
		case blockRepeatedByte:
			length = 1
		case blockReserved:
			return false
		}
		at += blockHeadLen
		if length > len(frame)-at {
			return false
		}
		at += length
	}
	if hasChecksum {
		at += frameChecksumLen
	}
	return at == len(frame)
}

// withDictionaryID returns a copy of a frame that names the dictionary. The decoder uses the
// dictionary only for frames that name it, which a writer may omit.
func withDictionaryID(frame []byte, id uint32) []byte {
	const descriptorAt, idLenMask, idLenFour, singleSegment = 4, 3, 3, 1 << 5
	descriptor := frame[descriptorAt]
	idAt, idLen := descriptorAt+1, []int{0, 1, 2, 4}[descriptor&idLenMask]
	if descriptor&singleSegment == 0 {
		idAt++ // The descriptor of the window precedes the dictionary.
	}
	named := append(make([]byte, 0, len(frame)+4), frame[:idAt]...)
	named[descriptorAt] |= idLenFour
	named = binary.LittleEndian.AppendUint32(named, id)
	return append(named, frame[idAt+idLen:]...)
}

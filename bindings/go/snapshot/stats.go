package snapshot

// Stats has the statistics of a snapshot, from the headers of its files. Lengths are in bytes. For
// a set they are sums, unless stated otherwise. The names in JSON are those of `nuthatch info
// --json`.
type Stats struct {
	// Version is the version of the format; the highest of all shards.
	Version string `json:"version"`
	// Shards is the number of shards; 0 for a file that was opened without a manifest.
	Shards uint64 `json:"shards"`
	// FileBytes is the length of the file. For a set, the manifest does not count.
	FileBytes uint64 `json:"file_bytes"`
	// Entries is the number of entries.
	Entries uint64 `json:"entries"`
	// KeyBytes is the sum of the lengths of all keys.
	KeyBytes uint64 `json:"key_bytes"`
	// ValueBytes is the sum of the lengths of all values, decompressed.
	ValueBytes uint64 `json:"value_bytes"`
	// StoredValueBytes is the sum of the lengths of all stored values. A shared value counts once.
	StoredValueBytes uint64 `json:"stored_value_bytes"`
	// SharedEntries is the number of entries that refer to a value that another entry stores.
	SharedEntries uint64 `json:"shared_entries"`
	// CompressedEntries is the number of entries whose value is compressed.
	CompressedEntries uint64 `json:"compressed_entries"`
	// DictionaryBytes is the length of the compression dictionary.
	DictionaryBytes uint64 `json:"dictionary_bytes"`
	// MetadataBytes is the length of the metadata; that of the manifest for a set.
	MetadataBytes uint64 `json:"metadata_bytes"`
	// IndexBytes is the length of the index section.
	IndexBytes uint64 `json:"index_bytes"`
	// DataBytes is the length of the data section.
	DataBytes uint64 `json:"data_bytes"`
	// Partitions is the number of partitions of the index.
	Partitions uint64 `json:"partitions"`
	// Lines is the number of lines of the index.
	Lines uint64 `json:"lines"`
	// MaxProbe is the maximum number of lines from the home line of a key to the line that holds
	// it; the maximum of all shards.
	MaxProbe uint64 `json:"max_probe"`
	// Seed is the seed of the key hash, the same in all shards.
	Seed uint64 `json:"seed"`
	// EntriesByType has the number of entries of each type that occurs, by the name of the type.
	EntriesByType map[string]uint64 `json:"entries_by_type"`
}

// Load returns the fraction of index slots that are in use, from 0 to 1.
func (s Stats) Load() float64 {
	return float64(s.Entries) / float64(max(s.Lines, 1)*lineSlots)
}

// OverheadBytesPerEntry returns the number of bytes per entry that the file takes beyond keys and
// stored values; 0 for a snapshot without entries.
func (s Stats) OverheadBytesPerEntry() float64 {
	payload := s.KeyBytes + s.StoredValueBytes
	if s.Entries == 0 || s.FileBytes < payload {
		return 0
	}
	return float64(s.FileBytes-payload) / float64(s.Entries)
}

// Stats returns the statistics. It does not read the files. The error is nil or [ErrClosed].
func (s *Snapshot) Stats() (Stats, error) {
	set := s.set.Load()
	files, err := s.files()
	if err != nil {
		return Stats{}, err
	}
	stats := Stats{Seed: files[0].header.seed, EntriesByType: map[string]uint64{}}
	minor := uint16(0)
	for _, f := range files {
		minor = max(minor, f.header.versionMinor)
		stats.add(f.header)
	}
	if set != nil {
		stats.Shards = uint64(len(set.files))
		stats.MetadataBytes = uint64(len(set.manifest.metadata))
	}
	stats.Version = versionName(minor)
	return stats, nil
}

// add adds the statistics of a file.
func (s *Stats) add(h *header) {
	s.FileBytes += h.fileLen
	s.Entries += h.entries
	s.KeyBytes += h.keyBytes
	s.ValueBytes += h.valueBytes
	s.StoredValueBytes += h.storedValueBytes
	s.SharedEntries += h.sharedEntries
	s.CompressedEntries += h.compressedEntries
	s.DictionaryBytes += h.dictionary.length
	s.IndexBytes += h.index.length
	s.DataBytes += h.data.length
	s.Partitions += h.partitions()
	s.Lines += h.index.length / lineLen
	s.MaxProbe = max(s.MaxProbe, uint64(h.maxProbe))
	if _, entry, ok := h.metadata(); ok {
		s.MetadataBytes += entry.section.length
	}
	for code, count := range h.entriesByType {
		if count > 0 {
			s.EntriesByType[Type(code).String()] += count
		}
	}
}

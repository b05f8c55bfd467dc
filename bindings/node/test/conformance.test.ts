// The shared vectors of testdata/snapshot. They run in one process, which notes the cases that
// passed in the file that the environment variable NUTHATCH_CASES names.

import "./conformance/files.js";
import "./conformance/tables.js";
import "./conformance/watch.js";

// The identity of data by content. Hashed is the stream of windows: each window's T + 1 tokens,
// four little-endian bytes a token, windows in order; in front of it T and the number of windows
// (eight bytes each). So the digest is the same for the same windows, whatever files, formats,
// widths or shards they come from, and changes with the window length.
//
// A stream of up to 64 MiB is hashed whole. Of a longer one 1,024 pieces of 64 KiB are: piece i
// begins at token floor(i (N - n) / 1023) of the stream, N being its tokens and n = 16,384 those of
// a piece; the first piece is the beginning and the last one the end. A resume must not read a
// terabyte.
#pragma once

#include "config/base/error.hpp"
#include "config/base/hash.hpp"
#include "model/data/tokens.hpp"
#include "model/data/windows.hpp"

namespace troupe::model::data {

result<hash128> window_digest(const token_store& store, const window_map& windows);

}  // namespace troupe::model::data

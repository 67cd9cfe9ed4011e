// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_sample.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void sample_cursor::add_context(error& e) const {
  // An offset without a file comes from a codec and counts from the field's first byte.
  if (e.file().empty() && e.offset() && touched != no_offset) e.within("the field", touched);
  e.in_file(*url).for_key(tables->key(sample));
  e.at_offset(touched != no_offset ? touched : tables->offset(first));
}

PENSTOCK_INLINE void wrong_size(std::uint64_t size, std::uint64_t room) {
  throw error(errc::argument, {"a member of ", size, " bytes was to be read into ", room});
}

PENSTOCK_INLINE void grow(std::vector<spare_member>& spares, std::size_t count) { spares.resize(count); }

}  // namespace penstock::inline v0_1::detail

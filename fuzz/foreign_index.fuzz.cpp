// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// DALI's and Energon's indexes, with their shards: [1 put checksums right, 2 Energon][bytes of index, 16
// bits][index][archive]

#include <penstock/source/dali_index.hpp>
#include <penstock/source/energon_index.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"
#include "support/tar.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const ps::bytes_view index = in.take(in.number<std::uint16_t>());
  const ps::bytes_view given = in.rest();
  const std::string archive = (how & 1) != 0 ? sealed(given) : std::string(ps::text_of(given));
  const auto files = ps::memory_files().add_view("a.tar", ps::bytes_of(archive));
  auto session = files.connect();
  outcome([&] {
    try {
      const ps::detail::foreign_shard shard{session, 0, session.version(0)};
      const bool energon = (how & 2) != 0;
      const ps::buffer made =
          energon ? ps::detail::index_from_energon(shard, index) : ps::detail::index_from_dali(shard, index);
      must(ps::detail::shard_index::over(made.view()).has_value(),
           "an index that was made passes its own checks");
      if (!energon && ps::text_of(index).starts_with("v1.2")) return;  // not all headers are read
      const ps::buffer own = ps::detail::build_index(session, 0, "a.tar");
      must(ps::text_of(own.view()) == ps::text_of(made.view()), "the index agrees with our own");
    } catch (const ps::detail::disagreement& d) {
      must(!d.text.empty(), "a disagreement has a message");
    }
  });
  return 0;
}

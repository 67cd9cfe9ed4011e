// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A list of hashes, as sha256sum writes it: [length of a name][name that is looked for][list]

#include <penstock/storage/sha256_list.hpp>

#include "support/fuzz.hpp"

#include <cstdint>
#include <optional>
#include <string>

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const std::string wanted(ps::text_of(in.take(in.number())));
  const std::string text(ps::text_of(in.rest()));
  std::optional<std::uint64_t> offset;
  const std::string failed = outcome([&] {
    try {
      const ps::sha256_list read = ps::sha256_list_from_string(text);
      must(read.size() != 0, "a list has entries");
      const std::string written = ps::to_string(read);
      must(written.size() <= text.size() * 2 + 66, "what is written is not much longer");
      const ps::sha256_list again = ps::sha256_list_from_string(written);
      must(ps::to_string(again) == written && again.size() == read.size(), "what is written is read back");
      for (std::size_t i = 0; i < read.size(); ++i) {
        const auto& one = read.entries()[i];
        must(one.name == again.entries()[i].name && one.hash == again.entries()[i].hash, "in the same order");
        if (one.name.find("://") != std::string::npos) continue;  // whose query counts for nothing
        must(read.find(one.name) == one.hash, "an entry is found by its name");
        const auto below = read.find("folder/" + one.name);
        must(below.has_value(), "an entry is found in a folder");
      }
      const auto found = read.find(wanted);
      bool any = false;
      for (const auto& one : read.entries()) any = any || found == one.hash;
      must(!found || any, "what is found is of an entry");
    } catch (const ps::error& e) {
      must(e.code() == ps::errc::format, "what is no list is of another format");
      offset = e.offset();
      throw;
    }
  });
  if (!failed.empty()) must(offset && *offset <= text.size(), "an error has an offset in the text");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A file of profiles as ~/.aws/config and ~/.aws/credentials are: [file]

#include <penstock/storage/s3/profiles.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace s3 = penstock::detail::s3;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file = penstock::text_of(input(data, size).rest());
  const std::string line = outcome([&] {
    const auto sections = s3::ini_reader(file, "the file").read();
    std::string again;
    for (const s3::ini_section& section : sections) {
      must(!section.name.empty(), "a section has a name");
      again += "[" + section.name + "]\n";
      for (const s3::ini_entry& entry : section.entries) {
        must(!entry.name.empty(), "an entry has a name");
        must(entry.value.empty() || entry.inner.empty(), "an entry has a value or entries of its own");
        must(section.find(entry.name) != nullptr, "an entry is found");
        if (entry.value.find('\n') == std::string::npos) again += entry.name + " = " + entry.value + "\n";
        for (const s3::name_value& inner : entry.inner)
          again += "  " + inner.name + " = " + inner.value + "\n";
      }
    }
    for (std::size_t i = 0; i < sections.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        must(sections[i].name != sections[j].name, "a section is there once");
    touch(again);
  });
  // An error shows the number of a line, and no byte of the file.
  if (!line.empty()) {
    must(line.find(" of this file of AWS profiles ") != std::string::npos, "the error is about a line");
    must(line.size() < 160, "the error does not show the line");
  }
  return 0;
}

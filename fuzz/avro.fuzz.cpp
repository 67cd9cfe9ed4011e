// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Avro's object container files: [whether blocks are unpacked][file]

#include <penstock/source/tables/avro_file.hpp>

#include "support/fuzz.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

void copy(std::string_view, ps::bytes_view packed, std::uint64_t limit, std::vector<std::byte>& into) {
  if (packed.size() > limit) throw ps::error(ps::errc::limit, "more than the limit");
  into.assign(packed.begin(), packed.end());
}

// All that a record of a manifest is asked for, and a little more.
std::string values(const ps::detail::avro_record& one, ps::bytes_view file, bool in_place, int level = 0) {
  std::string all;
  for (const ps::detail::avro_name field :
       {ps::detail::avro_name{0, "status"}, {1, "a"}, {2, "data_file"}, {3, "b"}}) {
    const bool has = one.has(field);
    all += has ? "+" : "-";
    outcome([&] { all += std::to_string(one.number(field).value_or(0)); });
    outcome([&] {
      const auto text = one.text(field);
      if (!text) return;
      must(has, "a text is there");
      must(text->size() <= file.size(), "a text takes its bytes");
      if (in_place && !text->empty())
        must(text->data() >= static_cast<const void*>(file.data()) &&
                 text->data() + text->size() <= static_cast<const void*>(file.data() + file.size()),
             "a text lies within the file");
      touch(*text);
      all += *text;
    });
    outcome([&] { all += one.spelled(field).value_or(""); });
    outcome([&] {
      const auto inner = one.record(field);
      if (inner && level < 3) all += values(*inner, file, in_place, level + 1);
      if (inner) must(inner->end() <= one.end(), "a record lies within the one around it");
    });
  }
  return all;
}

std::string read(ps::bytes_view bytes, bool unpacked) {
  std::string all;
  all += outcome([&] {
    ps::detail::avro_file file(bytes, unpacked ? copy : nullptr);
    const bool in_place = file.metadata("avro.codec").empty() || file.metadata("avro.codec") == "null";
    std::size_t count = 0, end = 0;
    while (const auto one = file.next()) {
      must(++count <= bytes.size(), "a record takes at least a byte of its block");
      must(one->end() <= bytes.size(), "a record lies within its block");
      end = one->end();
      if (all.size() < (1 << 16)) all += values(*one, bytes, in_place);
    }
    all += std::to_string(end);
  });
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const bool unpacked = in.number() % 2 != 0;
  const ps::bytes_view bytes = in.rest();
  const std::string first = read(bytes, unpacked);
  must(read(bytes, unpacked) == first, "what is read again is the same");
  return 0;
}

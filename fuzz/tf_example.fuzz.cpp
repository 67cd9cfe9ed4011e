// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The features of a tf.train.Example: [example]

#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>

#include "support/fuzz.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T>
using one_feature = ps::tf_example<ps::feature<"x", T>>;

template <class T>
std::string read(ps::bytes_view bytes) {
  static typename one_feature<T>::scratch scratch;  // it may have seen damage
  std::string written;
  outcome([&] {
    const auto value = ps::get<"x">(one_feature<T>{}.decode(bytes, scratch));
    if constexpr (requires { value.size(); }) {
      must(value.size() <= bytes.size(), "a value takes at least a byte");
      if constexpr (sizeof(value[0]) == 1) {
        must(value.empty() ||
                 (value.data() >= static_cast<const void*>(bytes.data()) &&
                  value.data() + value.size() <= static_cast<const void*>(bytes.data() + bytes.size())),
             "bytes lie within their example");
      }
    }
    written = ps::tf_example_bytes({{"x", value}});
  });
  return written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ps::bytes_view bytes = input(data, size).rest();
  const std::string integers = read<std::span<const std::int64_t>>(bytes),
                    floats = read<std::span<const float>>(bytes);
  // What was read is written, and read back as the same.
  if (!integers.empty())
    must(read<std::span<const std::int64_t>>(ps::bytes_of(integers)) == integers, "integers stay");
  if (!floats.empty()) must(read<std::span<const float>>(ps::bytes_of(floats)) == floats, "floats stay");
  for (const std::string& one : {read<std::int64_t>(bytes), read<std::uint8_t>(bytes), read<bool>(bytes)})
    if (!one.empty()) must(one == integers, "a single integer is the only one of the list");
  const std::string content = read<ps::bytes>(bytes);
  must(content == read<std::string_view>(bytes), "a text is its bytes");
  if (!content.empty()) must(read<ps::bytes>(ps::bytes_of(content)) == content, "bytes stay");
  return 0;
}

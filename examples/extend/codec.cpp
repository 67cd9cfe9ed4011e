// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A codec of your own: numbers from text, such as "0.5,1,-2". Bytes are hostile: any fault is one error.

#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <charconv>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ps = penstock;

namespace mine {

struct comma_numbers {
  std::size_t limit = 1000;  // options are members

  static constexpr std::string_view codec_name = "comma_numbers";
  static constexpr std::string_view extensions[] = {"csv"};
  using scratch = std::vector<float>;  // one per worker

  template <ps::byte_element Bytes>
  [[nodiscard]] std::span<const float> decode(const Bytes& in, scratch& values) const {
    const std::string_view text = ps::text_of(ps::as_bytes(in));
    values.clear();
    for (const char *at = text.data(), *end = at + text.size();;) {
      float value = 0;
      const auto [next, failure] = std::from_chars(at, end, value);
      if (failure != std::errc{} || (next != end && *next != ','))
        throw ps::error(ps::errc::format, "found no number where one was expected")
            .at_offset(static_cast<std::uint64_t>(at - text.data()));
      if (values.size() == limit)
        throw ps::error(ps::errc::limit, "there are more than " + std::to_string(limit) + " numbers");
      values.push_back(value);
      if (next == end) return values;
      at = next + 1;
    }
  }
};
static_assert(ps::codec<comma_numbers>, "comma_numbers is a codec");

}  // namespace mine

int main() {
  const std::vector<std::string> rows{"0.5,1,-2", "3,4,5", "6,7"}, damaged{"1,2", "1,,2"};
  bool works = false;
  for (auto&& b : ps::from(rows) | ps::decode<mine::comma_numbers> | ps::batch(3, ps::ragged))
    works = b.values()[0][2] == -2.0f && b.values()[2].size() == 2;

  std::string said[2];
  try {
    for (auto&& b : ps::from(damaged) | ps::decode<mine::comma_numbers> | ps::batch(2)) static_cast<void>(b);
  } catch (const ps::error& e) {
    said[0] = e.what();  // the engine has added the stage and the position
  }
  try {
    const auto strict = ps::decode<mine::comma_numbers>(mine::comma_numbers{.limit = 2});
    for (auto&& b : ps::from(rows) | strict | ps::batch(1)) static_cast<void>(b);
  } catch (const ps::error& e) {
    said[1] = e.what();
  }
  std::printf("%s\n%s\n", said[0].c_str(), said[1].c_str());
  works = works && said[0].ends_with("[stage decode<comma_numbers>, offset 2, position 0:1]") &&
          said[1].find("more than 2") != std::string::npos;
  return works ? 0 : 1;
}

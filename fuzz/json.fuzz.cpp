// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// JSON whole, and a value of it, which must agree where the whole is JSON: [text]

#include <penstock/codec/json.hpp>
#include <penstock/codec/json_field.hpp>

#include "support/fuzz.hpp"

#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T>
void field(ps::bytes_view text, const ps::json_value* whole) {
  static typename ps::json_field<"a", T>::scratch scratch;
  const std::string problem = outcome([&] {
    const T value = ps::json_field<"a", T>{.limit = 1 << 20}.decode(text, scratch);
    if (whole == nullptr) return;  // what is wrong is within values that are passed over
    must(whole->is_object() && whole->contains("a"), "a value comes of a whole document");
    if constexpr (std::same_as<T, std::int64_t>) must((*whole)["a"] == value, "numbers agree");
    if constexpr (std::same_as<T, std::string>) must((*whole)["a"] == value, "texts agree");
    if constexpr (std::same_as<T, std::vector<double>>)
      must((*whole)["a"].size() == value.size(), "lists agree");
  });
  touch(problem);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ps::bytes_view text = input(data, size).rest();
  ps::no_scratch none;
  ps::json_value whole;
  const std::string problem = outcome([&] {
    whole = ps::json{.limit = 1 << 20, .depth = 64}.decode(text, none);
    const std::string again = whole.dump(-1, ' ', false, ps::json_value::error_handler_t::replace);
    const ps::json_value read = ps::json{}.decode(ps::bytes_of(again), none);
    // NaN and infinities are written as null
    if (again.find("null") == again.npos) must(read == whole, "a document is written and read back");
  });
  const ps::json_value* const known = problem.empty() ? &whole : nullptr;
  field<std::int64_t>(text, known);
  field<bool>(text, known);
  field<float>(text, known);
  field<std::string>(text, known);
  field<std::vector<double>>(text, known);
  field<std::array<std::uint8_t, 2>>(text, known);
  return 0;
}

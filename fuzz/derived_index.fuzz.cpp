// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Bytes as a derived index: [1 put sums right, 2 put the size right, 4 through a file][index]

#include <penstock/order/class_balanced.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/weighted.hpp>
#include <penstock/source/derived_index.hpp>
#include <penstock/source/records/shard_index.hpp>

#include "support/fuzz.hpp"

#include <memory>
#include <utility>

using namespace penstock_fuzz;
namespace ps = penstock;
namespace detail = penstock::detail;

namespace {

void repair(std::string& index, unsigned how) {
  auto* const at = reinterpret_cast<std::byte*>(index.data());
  const auto field = [&](std::size_t i) { return detail::load_little<std::uint64_t>(at + i); };
  std::memcpy(at, "PENSTVAL", 8);
  detail::store_little<std::uint32_t>(at + 8, 1);
  detail::store_little<std::uint32_t>(at + 12, 128);
  detail::store_little<std::uint32_t>(at + 20, 0);
  std::memset(at + 72, 0, 48);
  const std::uint64_t before = 128 + 8 * field(32) + 8 * field(48) + field(56);
  if ((how & 2) != 0 && before <= index.size())
    detail::store_little<std::uint64_t>(at + 40, index.size() - before);
  detail::store_little<std::uint64_t>(at + 64, detail::checksum(ps::bytes_of(index).subspan(128)));
  detail::store_little<std::uint64_t>(at + 120, detail::checksum(ps::bytes_of(index).first(120)));
}

template <class Values>
void use(const Values& values) {
  touch(values.name());
  const ps::order_input in{values.size(), nullptr,
                           std::make_shared<const ps::source_places>(values.dataset(), values.size())};
  const auto some = ps::subset(values, [](const auto& value) {
    if constexpr (requires { value.size(); }) touch(value);
    return value == value;
  });
  must(some.make(in).size() <= values.size(), "a subset is one");
  if constexpr (!std::is_same_v<typename Values::value_type, double>) {
    const auto balanced = ps::class_balanced(values, ps::seed(1)).make(in);
    const auto bound = balanced.bind(0);
    for (std::uint64_t i = 0; i < balanced.size() && i < 100; ++i)
      must(bound(i).index < values.size(), "positions are of the dataset");
  }
  if constexpr (std::is_arithmetic_v<typename Values::value_type>) {
    outcome([&] {
      const auto drawn = ps::weighted(values, ps::seed(1)).make(in);
      const auto bound = drawn.bind(0);
      for (std::uint64_t i = 0; i < drawn.size() && i < 100; ++i)
        must(bound(i).index < values.size() && values[bound(i).index] > 0, "what has no weight is not drawn");
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  input in(data, size);
  const unsigned how = in.number();
  std::string index(ps::text_of(in.rest()));
  if ((how & 1) != 0 && index.size() >= 128) repair(index, how);

  detail::values_file::outcome opened;
  if ((how & 4) != 0) {
    file.write(ps::bytes_of(index));
    opened = detail::values_file::open(file.path());
  } else {
    ps::buffer bytes(index.size());
    if (!index.empty()) std::memcpy(bytes.data(), index.data(), index.size());
    opened = detail::values_file::over(std::move(bytes), "bytes");
  }
  must((opened.file == nullptr) == (opened.fault != detail::values_fault::none), "a file or a fault");
  if (!opened.file) {
    must(opened.why.offset().has_value() && *opened.why.offset() <= index.size(), "a fault has its place");
    return 0;
  }
  switch (opened.file->header().kind) {
    case detail::value_kind::whole:
      use(ps::derived_index<std::int64_t>(opened.file));
      break;
    case detail::value_kind::natural:
      use(ps::derived_index<std::uint64_t>(opened.file));
      break;
    case detail::value_kind::floating:
      use(ps::derived_index<double>(opened.file));
      break;
    case detail::value_kind::text:
      use(ps::derived_index<std::string>(opened.file));
      break;
    case detail::value_kind::none:
      must(false, "values have a kind");
  }
  return 0;
}

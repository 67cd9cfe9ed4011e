// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codec npz: [type][bytes of the name][name][file]

#include <penstock/codec/npz.hpp>

#include "support/fuzz.hpp"

#include <cstring>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;
using namespace penstock::literals;

namespace {

template <class T>
void read(ps::bytes_view bytes, std::string_view name) {
  const ps::npz<T> codec{.array = name, .limit = 1_MiB};
  typename ps::npz<T>::scratch used, fresh;
  const auto values = [&](auto& scratch) {
    std::vector<T> all;
    const std::string said = outcome([&] {
      const auto view = codec.decode(bytes, scratch).finish();
      all.assign(view.data(), view.data() + view.shape().elements());
    });
    must(all.size() * sizeof(T) <= std::max<std::uint64_t>(1_MiB, bytes.size()),
         "an array is within the limit");
    return std::pair(said, all);
  };
  const auto first = values(used), again = values(used), other = values(fresh);
  must(first.first == again.first && first.first == other.first, "the scratch changes nothing");
  must(first.second.size() == again.second.size() && first.second.size() == other.second.size(),
       "the scratch changes no length");
  const std::size_t size = first.second.size() * sizeof(T);
  must(size == 0 || (std::memcmp(first.second.data(), again.second.data(), size) == 0 &&
                     std::memcmp(first.second.data(), other.second.data(), size) == 0),
       "the scratch changes no value");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned type = in.number();
  const ps::bytes_view name = in.take(in.number());
  const ps::bytes_view bytes = in.rest();
  if (type % 2 == 0)
    read<float>(bytes, ps::text_of(name));
  else
    read<std::uint8_t>(bytes, ps::text_of(name));
  return 0;
}

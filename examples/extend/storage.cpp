// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A storage of your own: it wraps another storage and counts the bytes read. Every source of files takes it.

#include <penstock/codec/integer.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/memory_files.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;

namespace mine {

template <ps::storage Inner>
struct counted {
  Inner inner;
  std::shared_ptr<std::atomic<std::uint64_t>> bytes = std::make_shared<std::atomic<std::uint64_t>>(0);

  struct session {
    typename Inner::session inner;
    std::shared_ptr<std::atomic<std::uint64_t>> bytes;

    [[nodiscard]] std::uint64_t size(ps::object_id id) { return inner.size(id); }
    [[nodiscard]] ps::object_version version(ps::object_id id) { return inner.version(id); }
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) {
      *bytes += into.size();
      inner.read(id, offset, into);
    }
  };

  [[nodiscard]] std::span<const std::string> names() const { return inner.names(); }
  [[nodiscard]] session connect() const { return {inner.connect(), bytes}; }
};

}  // namespace mine

int main() {
  std::vector<std::byte> shard;
  ps::tar_writer out([&](ps::bytes_view piece) { shard.insert(shard.end(), piece.begin(), piece.end()); });
  const std::vector<std::byte> image(100'000);
  for (int i = 0; i < 50; ++i) out.write(std::to_string(i), {{"img", image}, {"cls", std::to_string(i)}});
  out.close();
  const mine::counted<ps::memory_files> where{ps::memory_files().add("a.tar", shard)};
  static_assert(ps::storage<mine::counted<ps::memory_files>>, "counted is a storage");

  const auto labels = ps::webdataset(where) | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(50);
  const std::uint64_t before = *where.bytes;
  std::int64_t sum = 0;
  for (auto&& b : labels)
    for (const std::int64_t label : get<"cls">(b)) sum += label;
  const std::uint64_t read = *where.bytes - before;
  std::printf("%llu of %zu bytes were read\n", static_cast<unsigned long long>(read), shard.size());
  return sum == 49 * 50 / 2 && read < shard.size() / 10 ? 0 : 1;
}

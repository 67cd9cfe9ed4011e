// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// `copy` to a store that speaks S3. An object appears whole or not at all, as the store promises; then it is
// read back, and its parts are compared by their hashes with what was sent.

#include "copy_parts.hpp"
#include "copy_sink.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>
#include <penstock/storage/sidecar.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// What an object beside each copy says: of what it is one and, once it was compared, which object it is.
struct copy_record {
  static constexpr penstock::sidecar suffix{".penstock-copy"};  // a name that s3::list leaves out

  penstock::object_version from;
  std::optional<penstock::object_version> made;

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << from.size << ' ' << from.stamp;
    if (made) out << ' ' << made->size << ' ' << made->stamp;
    out << '\n';
    return out.str();
  }
  [[nodiscard]] static std::optional<copy_record> of(const std::string& text) {
    std::istringstream in(text);
    copy_record found;
    penstock::object_version made;
    if (!(in >> found.from.size >> found.from.stamp)) return std::nullopt;
    if (in >> made.size >> made.stamp) found.made = made;
    return found;
  }
};

/// Where objects are copied to, and what was there when the program started. A store has no locks: let no two
/// programs copy to one place at once.
class copy_prefix {
 public:
  copy_prefix(std::string where, const std::vector<std::string>& names)
      : objects_(under(std::move(where), names)),
        before_(objects_.connect()),
        records_(objects_.sidecars(copy_record::suffix).connect()) {}

  [[nodiscard]] const std::string& name(std::size_t number) const { return objects_.names()[number]; }
  [[nodiscard]] std::optional<penstock::object_version> object_before(std::size_t number) const {
    return if_there([&] { return before_.version(id_of(number)); });
  }
  [[nodiscard]] std::optional<copy_record> record_before(std::size_t number) const {
    const auto text = if_there([&] {
      std::string bytes(std::min<std::uint64_t>(records_.size(id_of(number)), 200), '\0');
      records_.read(id_of(number), 0, std::as_writable_bytes(std::span(bytes)));
      return bytes;
    });
    return text ? copy_record::of(*text) : std::nullopt;
  }

 private:
  [[nodiscard]] static penstock::object_id id_of(std::size_t number) {
    return static_cast<penstock::object_id>(number);
  }
  [[nodiscard]] static penstock::s3 under(std::string where, const std::vector<std::string>& names) {
    if (!where.ends_with('/')) where += '/';
    std::vector<std::string> there;
    for (const std::string& name : names) there.push_back(where + name);
    return penstock::s3(std::move(there));
  }
  /// Nothing for what the store does not have. Where it refuses to say so, writing says what is wrong.
  template <class F>
  [[nodiscard]] static auto if_there(F&& look) -> std::optional<decltype(look())> {
    try {
      return look();
    } catch (const penstock::error& e) {
      if (e.code() != penstock::errc::io || !e.recurs()) throw;
      return std::nullopt;
    }
  }

  penstock::s3 objects_;
  penstock::s3::session before_, records_;
};

/// Writes objects. What was begun for one by a program that was killed is begun anew: the store keeps its
/// parts, which nobody sees, until the bucket's rule for incomplete uploads ends them.
class s3_sink : public sink {
 public:
  s3_sink(const copy_prefix& place, std::uint64_t part_size, std::size_t ahead)
      : place_(place), ahead_(ahead), out_({}, {.part_size = std::clamp(part_size, least_part, max_part)}) {}

  std::optional<std::uint64_t> open(const copied_object& what) override {
    what_ = what;
    hashes_.clear();
    const auto record = place_.record_before(what.number);
    const auto there = place_.object_before(what.number);
    if (there && !record)
      throw std::runtime_error(name() + " is there and was not copied by this program; choose another --to");
    if (there && record->from == what.version && record->made == there) return std::nullopt;
    if (!record) keep({what.version, std::nullopt});  // so that the object is known to be ours
    out_.open(name());
    return 0;
  }
  void write(penstock::bytes_view part) override {
    hashes_.push_back(hash_of(part));
    out_.write(part);
  }
  void finish() override {
    const penstock::object_version made = out_.finish();
    const penstock::s3 object(std::vector<std::string>{name()});
    auto session = object.connect();
    const penstock::object_version there = session.version(0);
    if (there.size != what_.version.size || (made.stamp != 0 && there != made))
      throw std::runtime_error(name() +
                               " is another object than was written; does another program write there?");
    std::mutex asking;
    parts_ahead parts(session, asking, 0, what_, 0, ahead_);
    for (const std::uint64_t sent : hashes_)
      if (hash_of(parts.take()) != sent)
        throw std::runtime_error(name() + " has other bytes in the store than were sent; copy it again");
    keep({what_.version, there});
  }
  void abort() noexcept override { out_.abort(); }

 private:
  static constexpr std::uint64_t least_part = std::uint64_t{5} << 20, max_part = std::uint64_t{1} << 30;

  [[nodiscard]] const std::string& name() const { return place_.name(what_.number); }
  void keep(const copy_record& record) {
    out_.open(copy_record::suffix.of(name()));
    out_.write(penstock::bytes_of(record.text()));
    static_cast<void>(out_.finish());
  }

  const copy_prefix& place_;
  std::size_t ahead_;
  penstock::s3_writer out_;
  copied_object what_;
  std::vector<std::uint64_t> hashes_;
};

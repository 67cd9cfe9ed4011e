// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// Writes zip archives of stored members, valid and false ones.
class zip_writer {
 public:
  struct member {
    std::string name = {}, bytes = {};
    std::uint16_t method = 0, flags = 0;
    bool wide = false;             ///< sizes and offset in an extra field of 64-bit numbers
    std::string local_name = {};   ///< a different name in the local header
    std::string local_extra = {};  ///< an extra field in the local header that the directory lacks
    std::uint64_t more = 0;        ///< the directory claims this many more bytes
    std::string extra = {};        ///< an extra field in the directory
  };
  std::string comment;
  bool wide_end = false;  ///< an end record of 64-bit numbers as well
  std::string prefix;     ///< bytes before the archive

  zip_writer& add(member m) {
    members_.push_back(std::move(m));
    return *this;
  }
  zip_writer& add(std::string name, std::string bytes) { return add({std::move(name), std::move(bytes)}); }

  [[nodiscard]] std::string text() const {
    std::string all = prefix, directory;
    for (const member& m : members_) {
      const std::uint64_t at = all.size() - prefix.size(), size = m.bytes.size() + m.more;
      const std::string& local = m.local_name.empty() ? m.name : m.local_name;
      const std::string wide = m.wide ? little(1, 2) + little(16, 2) + little(size, 8) + little(size, 8) : "";
      all += "PK\3\4" + head(m, m.wide ? ~std::uint64_t{0} : size) + little(local.size(), 2) +
             little(wide.size() + m.local_extra.size(), 2) + local + wide + m.local_extra + m.bytes;
      const std::string extra =
          m.extra +
          (m.wide ? little(1, 2) + little(24, 2) + little(size, 8) + little(size, 8) + little(at, 8) : "");
      directory += "PK\1\2" + little(45, 2) + head(m, m.wide ? ~std::uint64_t{0} : size) +
                   little(m.name.size(), 2) + little(extra.size(), 2) + std::string(10, '\0') +
                   little(m.wide ? ~std::uint64_t{0} : at, 4) + m.name + extra;
    }
    const std::uint64_t begin = all.size() - prefix.size(), count = members_.size();
    all += directory;
    if (wide_end) {
      const std::uint64_t at = all.size() - prefix.size();
      all += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
             little(count, 8) + little(directory.size(), 8) + little(begin, 8);
      all += "PK\6\7" + little(0, 4) + little(at, 8) + little(1, 4);
    }
    const std::uint64_t maximum = wide_end ? ~std::uint64_t{0} : 0;
    all += "PK\5\6" + little(0, 4) + little(maximum | count, 2) + little(maximum | count, 2) +
           little(maximum | directory.size(), 4) + little(maximum | begin, 4) + little(comment.size(), 2) +
           comment;
    return all;
  }

  static std::string little(std::uint64_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  }

 private:
  // The fields of both headers: version, flags, method, time, date, checksum, sizes.
  static std::string head(const member& m, std::uint64_t size) {
    return little(45, 2) + little(m.flags, 2) + little(m.method, 2) + std::string(8, '\0') + little(size, 4) +
           little(size, 4);
  }

  std::vector<member> members_;
};

}  // namespace penstock_test

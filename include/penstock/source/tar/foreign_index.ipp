// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/foreign_index.hpp>

#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/records/index_file.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <algorithm>
#include <charconv>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void disagree(std::initializer_list<piece> what) { throw disagreement{detail::text(what)}; }

PENSTOCK_INLINE buffer build_foreign_index(const foreign_index& other, foreign_shard shard,
                                           const std::string& name, sidecar_objects* near) {
  const std::string path = other.file.of(name);
  const std::string both = detail::text({"the ", other.program, " index ", path, " of the shard ", name});
  shard.version = shard.session.version(shard.id);
  const std::uint64_t maximum = max_index_bytes(shard.version.size);
  std::optional<buffer> bytes;
  if (near != nullptr) {
    shard.checks = stored_index_checks;
    std::string why;
    bytes = near->read(shard.id, other.file, maximum, &why);
    if (!bytes) throw error(errc::missing, {both, " cannot be used: ", why}).in_file(name);
  } else {
    try {
      bytes = read_whole_file(path, maximum, "the index of this shard");
    } catch (const error& e) {
      throw error(e.code() == errc::limit ? errc::limit : errc::missing,
                  {both, " cannot be used: ", e.message()})
          .in_file(name);
    }
  }
  try {
    return in_file(name, [&] { return other.translate(shard, bytes->view()); });
  } catch (const disagreement& d) {
    throw error(errc::format, {both, " ", d.text}).in_file(name);
  }
}

// What an index says about a member.
struct foreign_member {
  std::string_view suffix;
  std::string_view path;  // empty if the index does not say
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t line = 0;  // the members of one line form a sample
};

// The lines of DALI's index: `EXT OFFSET SIZE NAME` for each member of a sample; without NAME in v1.1.
class dali_lines {
 public:
  dali_lines(std::string_view text, std::uint64_t shard_size) : rest_(text), shard_size_(shard_size) {
    const std::string_view first = line();
    named_ = first.starts_with("v1.2 ");
    if (!named_ && !first.starts_with("v1.1 ")) disagree({"is not one of version v1.1 or v1.2"});
    const std::uint64_t samples = number(first.substr(5));
    while (!rest_.empty()) members_of(line());
    if (samples != line_ - 1) disagree({"announces ", samples, " samples and has ", line_ - 1});
  }

  [[nodiscard]] bool named() const noexcept { return named_; }
  [[nodiscard]] const std::vector<foreign_member>& members() const noexcept { return members_; }

 private:
  std::string_view line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return found;
  }

  [[nodiscard]] static std::string_view word(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
    const std::size_t end = std::min(text.find_first_of(" \t\r"), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(end);
    return found;
  }

  [[nodiscard]] std::uint64_t number(std::string_view text) const {
    const std::string_view digits = word(text);
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc{} || end != digits.data() + digits.size())
      disagree({"has '", digits.substr(0, 40), "' in line ", line_, " where a number should be"});
    return value;
  }

  void members_of(std::string_view text) {
    const std::size_t before = members_.size();
    while (true) {
      foreign_member m;
      m.suffix = word(text);
      if (m.suffix.empty()) break;
      m.data = number(word(text));
      m.size = number(word(text));
      m.line = line_;
      if (named_) {
        m.path = word(text);
        if (m.path.empty()) disagree({"ends within line ", line_});
      }
      if (m.data % tar::block_size != 0 || m.data == 0)
        disagree({"has an offset in line ", line_, " that is not a multiple of 512"});
      if (m.data > shard_size_ || m.size > shard_size_ - m.data)
        disagree({"has a member in line ", line_, " that ends at ", m.data, " + ", m.size,
                  ", and the shard has ", shard_size_, " bytes"});
      // a header lies between two members, so the shard's size bounds their number
      if (!members_.empty() && m.data < members_.back().data + members_.back().size + tar::block_size)
        disagree({"has members that overlap, or are out of order, in line ", line_});
      members_.push_back(m);
    }
    if (members_.size() == before) disagree({"has no member in line ", line_});
  }

  std::string_view rest_;
  std::uint64_t shard_size_;
  std::uint64_t line_ = 0;
  bool named_ = false;
  std::vector<foreign_member> members_;
};

class dali_check : private foreign_check {
 public:
  using foreign_check::foreign_check;

  [[nodiscard]] buffer index(std::string_view text) {
    const dali_lines lines(text, shard.version.size);
    if (lines.named())
      by_names(lines.members());
    else
      by_headers(lines.members());
    return builder.finish(shard.version);
  }

 private:
  static constexpr std::string_view in_line = " in line ";

  // A line is a sample: members that WebDataset skips are not part of it.
  void add(const shard_member& m, const foreign_member& said) {
    const std::uint64_t before = builder.met();
    builder.add(m);
    const bool another = builder.met() != before;
    if (another == (said.line == line_)) {
      disagree({another ? "has members of two samples" : "divides a sample into two, the second one", in_line,
                said.line});
    }
    line_ = said.line;
  }

  void by_headers(const std::vector<foreign_member>& said) {
    std::size_t next = 0;
    tar::member_scan found = members();
    for (shard_member m; found.next(m);) {
      const bool listed = next < said.size() && said[next].data == m.data;
      if (!belongs(m)) {
        if (listed) ++next;
        continue;
      }
      if (!listed || said[next].size != m.size) {
        const bool more = next < said.size();
        disagree({"does not have '", m.path, "', ", m.size, " bytes at ", m.data, more ? "," : "",
                  more ? in_line : "", more ? piece(said[next].line) : piece("")});
      }
      add(m, said[next]);
      ++next;
    }
    builder.note_unended(found.unended());
    if (next < said.size())
      disagree({"has a member", in_line, said[next].line, " that the shard does not have there"});
  }

  void by_names(const std::vector<foreign_member>& members) {
    header_reader in(shard.session, shard.id, shard.version.size, shard.pace);
    std::vector<const foreign_member*> kept;
    for (const foreign_member& said : members) {
      const shard_member m{said.path, said.data - tar::block_size, said.data, said.size, false};
      if (!belongs(m)) continue;
      if (split_member(m.path)->suffix != said.suffix)
        disagree({"calls '", said.path, "' a member '", said.suffix, "'", in_line, said.line});
      add(m, said);
      kept.push_back(&said);
    }
    const std::size_t places = shard.checks + 1;
    for (std::size_t i = 0; i <= places && !kept.empty(); ++i)
      check(in, *kept[(kept.size() - 1) * i / places]);
    check_edges(in, kept);
  }

  // Checks the header before a member's bytes. The name may be in a separate header before that one.
  void check(header_reader& in, const foreign_member& said) {
    const bytes_view block = in.get(said.data - tar::block_size, tar::block_size);
    bool good = block.size() == tar::block_size && tar::checksum_matches(block);
    if (good) {
      const auto stored = tar::number_field(block, 124, 12);
      const bool large = said.size >> 33 != 0;  // beyond the range of the octal digits
      good = (stored == said.size || large) && (block[156] == std::byte{'0'} || block[156] == std::byte{0});
      tar::header_path(block, path_);
      const bool plain = said.path.size() <= 100 && std::all_of(said.path.begin(), said.path.end(),
                                                                [](char c) { return c > ' ' && c < 127; });
      good = good && (!plain || path_ == said.path);
    }
    if (!good) {
      disagree({"has '", said.path, "', ", said.size, " bytes at ", said.data, ",", in_line, said.line,
                ", and the shard does not have it there"});
    }
  }

  // Checks that no member of a sample lies before the first member or after the last.
  void check_edges(header_reader& in, const std::vector<const foreign_member*>& kept) {
    tar::member_walk walk(tar::walk_input::of(in), shard.extension_limit);
    shard_member found;
    const auto next = [&] {
      while (walk.next(found))
        if (belongs(found)) return true;
      return false;
    };
    const bool first = next();
    if (first && (kept.empty() || found.data != kept.front()->data))
      disagree({"does not have the first member of the shard, '", found.path, "'"});
    if (!first && !kept.empty()) disagree({"has samples, and the shard has none"});
    builder.note_unended(kept.empty() && walk.unended());
    if (kept.empty()) return;
    walk.restart(kept.back()->data + tar::padded(kept.back()->size));
    if (next()) disagree({"ends before '", found.path, "', which the shard has after it"});
    builder.note_unended(walk.unended());
  }

  std::uint64_t line_ = 0;  // of the last sample
  std::string path_;
};

PENSTOCK_INLINE buffer index_from_dali(const foreign_shard& shard, bytes_view text) {
  return dali_check(shard).index(text_of(text));
}

}  // namespace detail
}  // namespace penstock::inline v0_1

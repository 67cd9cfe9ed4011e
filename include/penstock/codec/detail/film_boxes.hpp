// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

/// What the boxes of an MP4 or QuickTime file claim, before FFmpeg's demuxer sees them: it allocates for all
/// frames that they claim, and leaves out fragments that it cannot read.
namespace penstock::inline v0_1::detail {

[[nodiscard]] inline std::uint64_t big_endian(bytes_view bytes, std::uint64_t at, unsigned count) noexcept {
  const std::byte* const first = bytes.data() + at;
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint64_t>(first[i]);
  return value;
}

/// How long a file is, as its container says, and whether that holds together.
struct film_extent {
  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t size = 0;          ///< more than the file has if it is truncated
  std::uint64_t damage = nowhere;  ///< where something stands that the container does not have there
  /// What the demuxer would keep or do beyond what the file's own tables have, about: samples of one size,
  /// those that edit lists repeat, pairs of names.
  std::uint64_t claimed = 0;
  std::vector<std::uint64_t> lost = {};  ///< where fragments begin that FFmpeg would read wrongly, or fail at
};

/// Whether a box of four letters is one of these, written one behind the other.
[[nodiscard]] constexpr bool is_box_of(std::string_view type, std::string_view names) noexcept {
  for (; names.size() >= 4; names.remove_prefix(4))
    if (names.substr(0, 4) == type) return true;
  return false;
}

/// Follows the boxes that FFmpeg follows. In a film of fragments each box between and in them must be one
/// that is known there, fit its parent to the byte, be of a track that there is, and, where numbers of
/// fragments ascend by one, none may be missing; of others, only tables must fit their boxes.
/// Sources: ISO/IEC 14496-12; FFmpeg's mov.c.
class mp4_boxes {
 public:
  [[nodiscard]] static film_extent extent_of(bytes_view file) {
    mp4_boxes boxes(file);
    boxes.found_.size = file.size();
    boxes.walk({}, 0, file.size(), 0);
    boxes.end_track();
    boxes.claim(boxes.tracks_ * boxes.fragments_);
    if (!boxes.disorder_ && boxes.gap_ != film_extent::nowhere && boxes.successors_ >= boxes.gaps_)
      boxes.damage(boxes.gap_);
    return boxes.found_;
  }

 private:
  struct track {
    std::uint64_t samples = 0, chunks = 0, largest_chunk = 0, edits = 0;
    unsigned time_tables = 0;
    bool one_size = false, ticks = false, sound = false, pictures = false;
  };

  explicit mp4_boxes(bytes_view file) : file_(file) {}

  [[nodiscard]] std::uint64_t number(std::uint64_t at, unsigned bytes = 4) const noexcept {
    return big_endian(file_, at, bytes);
  }
  [[nodiscard]] std::string_view name(std::uint64_t at) const noexcept {
    return text_of(file_).substr(to_size(at), 4);
  }
  void damage(std::uint64_t at) {
    found_.damage = std::min(found_.damage, at);
    if (in_fragment_ && (found_.lost.empty() || found_.lost.back() != fragment_))
      found_.lost.push_back(fragment_);
  }
  void claim(std::uint64_t entries) noexcept {
    constexpr std::uint64_t most = std::uint64_t{1} << 60;
    found_.claimed = std::min(found_.claimed + std::min(entries, most), most);
  }
  /// Of what must not even be recovered, because FFmpeg would read it as something else.
  void refuse(std::uint64_t at) {
    damage(at);
    claim(film_extent::nowhere);
  }

  /// The boxes from one place to another; `parent` is empty at the top level.
  void walk(std::string_view parent, std::uint64_t at, std::uint64_t end, unsigned depth) {
    const bool top = parent.empty(), strict = is_box_of(parent, "mooftraf");
    const bool names = is_box_of(parent, "udtailst");  // FFmpeg compares each with all others
    for (std::uint64_t boxes = 1; end - at >= 8; ++boxes) {
      if (names) claim(boxes);
      std::uint64_t size = number(at), head = 8;
      if (size == 1) {
        if (end - at < 16) break;
        size = number(at + 8, 8);
        head = 16;
      } else if (size == 0) {
        size = end - at;  // the last box, up to the end
      }
      if (size < head || size > end - at) {
        if (top && size > end - at)
          found_.size = std::max(found_.size, size > film_extent::nowhere - at ? size : at + size);
        if (strict || (top && fragmented_ && size < head)) damage(at);
        if (size < head) return;  // FFmpeg stops here, too
      }
      const std::uint64_t next = at + std::min(size, end - at);
      take(parent, at, at + head, next, depth);
      at = next;
    }
    if (at == end) return;
    if (top) found_.size = std::max(found_.size, at + (end - at < 8 ? 8 : 16));
    if (strict) damage(at);
  }

  void take(std::string_view parent, std::uint64_t box, std::uint64_t at, std::uint64_t end, unsigned depth) {
    const std::string_view type = name(box + 4);
    const std::uint64_t room = end - at;
    constexpr unsigned deepest = 11;  // FFmpeg's
    const auto inner = [&](std::string_view as) {
      if (depth < deepest) walk(as, at, end, depth + 1);
    };
    if ((parent == "moof" && !is_box_of(type, "mfhdtrafmetapsshuuidfreeskip")) ||
        (parent == "traf" &&
         !is_box_of(type, "tfhdtfdttrunsdtpsbgpsgpdsubssaizsaiosencmetaudtauuidfreeskip")) ||
        (parent.empty() && fragmented_ &&
         !is_box_of(type, "ftypmoovmdatfreeskipwidestypmoofmfrasidxssixprftemsgpdinpsshuuidmetaudtaimda")))
      damage(box);
    if (type == "trak") {
      end_track();
      ++tracks_;
      inner(type);
    } else if (type == "moof") {
      fragmented_ = true;
      ++fragments_;
      fragment_ = box;
      in_fragment_ = true;
      numbered_ = false;
      inner(type);
      if (!numbered_) damage(box);
      in_fragment_ = false;
    } else if (type == "traf") {
      of_track_ = false;
      inner(type);
      if (!of_track_) damage(box);
    } else if (is_box_of(type, "moovmdiaminfstbledtsmvexudtadinftrefwavesinfschiilst")) {
      if (type == "mvex") fragmented_ = true;
      inner(type);
    } else if (is_box_of(type, "freehoov") && room >= 8 && is_box_of(name(at + 4), "mvhdcmov")) {
      inner("moov");
    } else if (type == "meta") {
      while (end - at >= 8 && name(at + 4) != "hdlr") at += 4;
      inner(type);
    } else if (type == "stsd") {
      // Sample entries have boxes, too, none of which has a table.
      for (std::uint64_t i = at; end - i >= 4; ++i)
        if (is_box_of(name(i), "stszstz2sttscttsstscstssstpsstcoco64elsttrunsbgpcmovilociinf"))
          return refuse(box);
    } else if (is_box_of(type, "cmov")) {
      refuse(box);  // unpacks to anything
    } else {
      take_leaf(parent, type, box, at, room);
    }
  }

  void take_leaf(std::string_view parent, std::string_view type, std::uint64_t box, std::uint64_t at,
                 std::uint64_t room) {
    if (is_box_of(type, "sttscttsstscstssstpsstcoco64") || (type == "keys" && parent == "meta")) {
      const std::uint64_t entry = type == "stsc" ? 12 : is_box_of(type, "stssstpsstco") ? 4 : 8;
      const std::uint64_t count = table(box, at, room, 8, 8 * entry);
      if (type == "stts") track_.ticks = ++track_.time_tables == 1 && count == 1 && number(at + 12) == 1;
      if (is_box_of(type, "stcoco64")) track_.chunks = std::max(track_.chunks, count);
      for (std::uint64_t i = 0; type == "stsc" && i < count; ++i)
        track_.largest_chunk = std::max(track_.largest_chunk, number(at + 12 + i * entry));
    } else if (is_box_of(type, "stszstz2")) {
      const bool compact = type == "stz2";
      track_.one_size |= !compact && room >= 8 && number(at + 4) != 0;
      const std::uint64_t bits = compact && room >= 8 ? number(at + 7, 1) : track_.one_size ? 0 : 32;
      table(box, at, room, 12, bits);
      if (room >= 12) track_.samples = std::max(track_.samples, number(at + 8));
    } else if (type == "sbgp") {
      table(box, at, room, room >= 4 && number(at, 1) == 1 ? 16 : 12, 64);
    } else if (is_box_of(type, "ilociinf")) {
      const std::uint64_t head = type == "iloc" ? 10 : 8;
      if (room < head || (number(at, 1) >= (type == "iloc" ? 2u : 1u) && number(at + head - 4) > room))
        refuse(box);
    } else if (type == "elst") {
      if (room < 8) return refuse(box);
      const bool wide = number(at, 1) == 1;
      const unsigned entry = wide ? 20 : 12, length = wide ? 8 : 4;
      for (std::uint64_t i = at + 8; at + room - i >= entry; i += entry)
        track_.edits += number(i + length, length) != film_extent::nowhere >> (64 - 8 * length) ? 1 : 0;
    } else if (is_box_of(type, "mvhdmdhd")) {
      // FFmpeg takes units of no length for seconds.
      const std::uint64_t unit = room != 0 && number(at, 1) == 1 ? 20 : 12;
      if (room < unit + 4 || number(at + unit) == 0) damage(box);
    } else if (type == "hdlr" && room >= 12) {
      track_.sound |= name(at + 8) == "soun";
      track_.pictures |= name(at + 8) == "vide";
    } else {
      take_of_fragment(parent, type, box, at, room);
    }
  }

  void take_of_fragment(std::string_view parent, std::string_view type, std::uint64_t box, std::uint64_t at,
                        std::uint64_t room) {
    if (is_box_of(type, "trextfhdmfhdtrun") && room < 8) return refuse(box);
    if (type == "trex") {
      known_.push_back(number(at + 4));
    } else if (type == "tfhd") {
      of_track_ = std::find(known_.begin(), known_.end(), number(at + 4)) != known_.end();
    } else if (type == "mfhd") {
      const std::uint64_t here = number(at + 4);
      numbered_ = true;
      disorder_ |= here < last_;
      successors_ += here == last_ + 1 ? 1 : 0;
      if (here > last_ + 1 && fragments_ > 1) {
        ++gaps_;
        gap_ = std::min(gap_, fragment_);
      }
      last_ = here;
    } else if (type == "trun") {
      const auto flags = static_cast<unsigned>(number(at + 1, 3));
      const auto fields = [&](unsigned of) { return static_cast<unsigned>(4 * std::popcount(flags & of)); };
      const std::uint64_t head = 8 + fields(0x5), count = number(at + 4);
      table(box, at, room, head, 8 * fields(0xf00), 8);
      if (room != head + count * fields(0xf00)) damage(box);
      if (fields(0xf00) == 0) claim(count);
    } else if (type == "sidx" && parent.empty()) {
      const std::uint64_t head = room != 0 && number(at, 1) != 0 ? 32 : 24;
      if (room < head || (room - head) / 12 < number(at + head - 2, 2)) return damage(box);
      const std::uint64_t count = number(at + head - 2, 2);
      std::uint64_t last = number(at + (head == 32 ? 20 : 16), head == 32 ? 8 : 4);
      if (last > film_extent::nowhere >> 1) return damage(box);
      last += at + room;
      for (std::uint64_t i = 0; i < count; ++i) last += number(at + head + 12 * i) & 0x7fff'ffff;
      found_.size = std::max(found_.size, last);
      claim(tracks_ * count);
    }
  }

  /// How many entries a table has, of so many bits: those that it claims, if its box has them. The number
  /// is before the entries, or `number_at`.
  std::uint64_t table(std::uint64_t box, std::uint64_t at, std::uint64_t room, std::uint64_t head,
                      std::uint64_t bits, std::uint64_t number_end = 0) {
    if (room < head) {
      refuse(box);
      return 0;
    }
    const std::uint64_t count = number(at + (number_end == 0 ? head : number_end) - 4);
    const std::uint64_t there = bits == 0 ? count : (room - head) * 8 / bits;
    if (count <= there) return count;
    damage(box);
    claim(count);
    return there;
  }
  void end_track() noexcept {
    const track& t = track_;
    const bool pieces = t.sound && !t.pictures && t.ticks;  // of up to 1,024 samples
    const std::uint64_t chunks = t.chunks * ((t.largest_chunk + 1023) / 1024);
    const std::uint64_t entries = pieces ? chunks : std::max(t.samples, t.ticks ? chunks : 0);
    if (pieces || t.one_size) claim(entries);
    if (t.edits > 1)
      claim(entries > film_extent::nowhere / t.edits ? film_extent::nowhere : entries * t.edits);
    track_ = {};
  }

  bytes_view file_;
  film_extent found_;
  track track_;
  std::uint64_t tracks_ = 0, fragments_ = 0;
  std::vector<std::uint64_t> known_;  // tracks of fragments
  std::uint64_t fragment_ = 0;        // where the one at hand begins
  std::uint64_t last_ = 0;            // its number
  std::uint64_t successors_ = 0, gaps_ = 0, gap_ = film_extent::nowhere;
  bool fragmented_ = false, in_fragment_ = false, numbered_ = false, of_track_ = false, disorder_ = false;
};

}  // namespace penstock::inline v0_1::detail

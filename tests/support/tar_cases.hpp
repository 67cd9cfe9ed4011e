// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Archives in all dialects with the samples that they hold, or the error that they cause: for every source
// that reads tar.

#include "support/raw_tar.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock_test {

/// An archive and what is in it: lines `key: suffix=bytes suffix=bytes`, or an error.
struct tar_case {
  std::string name;
  std::string bytes;
  std::vector<std::string> lines;
  std::string error = {};  ///< a part of the message; empty if the archive is valid
  std::uint64_t offset = 0;
  std::string key = {};
  std::string python = {};  ///< what Python's tarfile reads, if that differs
};

/// `LENGTH KEY=VALUE\n`
inline std::string pax_record(const std::string& text) {
  std::size_t size = text.size() + 3;
  while (size != text.size() + 2 + std::to_string(size).size())
    size = text.size() + 2 + std::to_string(size).size();
  return std::to_string(size) + " " + text + "\n";
}

/// The 12 bytes of a number field in base 256.
inline std::string base256(std::uint64_t value) {
  std::string field(12, '\0');
  for (std::size_t i = 12; i-- > 4; value >>= 8) field[i] = static_cast<char>(value & 0xff);
  field[0] = static_cast<char>(0x80);
  return field;
}

inline std::vector<tar_case> good_tar_cases() {
  using tar = raw_tar;
  constexpr auto v7 = tar::dialect::v7;
  constexpr auto gnu = tar::dialect::gnu;
  const std::string zero(1, '\0');
  std::vector<tar_case> cases;
  const auto add = [&](std::string name, const tar& archive, std::vector<std::string> lines,
                       std::string python = {}) {
    cases.push_back({std::move(name), archive.bytes, std::move(lines), {}, 0, {}, std::move(python)});
  };
  const std::string folder(150, 'f');
  const std::string longest(150, 'n');

  // dialects
  add("v7", tar().member("a.txt", "1", '0', v7).member("b.txt", "2", '\0', v7).end(),
      {"a: txt=1", "b: txt=2"});
  add("v7 has no prefix", tar().header("a.txt", 1, '\0', v7, "prefix").body("1").end(), {"a: txt=1"},
      "takes a prefix from any header");
  add("v7 folders end with a slash",
      tar().header("folder.x/", 0, '\0', v7).member("folder.x/a.txt", "1", '\0', v7).end(),
      {"folder.x/a: txt=1"});
  add("ustar prefix", tar().header("a.txt", 1, '0', tar::dialect::ustar, folder).body("1").end(),
      {folder + "/a: txt=1"});
  add("a name of all 100 bytes",
      tar().member(std::string(96, 'n') + ".txt", "1").member(std::string(97, 'n') + ".tx", "2").end(),
      {std::string(96, 'n') + ": txt=1", std::string(97, 'n') + ": tx=2"});
  add("GNU has no prefix", tar().header("a.txt", 1, '0', gnu, "123 456").body("1").end(), {"a: txt=1"},
      "takes a prefix from any header");
  add("GNU long names and links",
      tar()
          .member("././@LongLink", "a link's target" + zero, 'K', gnu)
          .member("././@LongLink", folder + "/" + longest + ".txt" + zero, 'L', gnu)
          .member("short.txt", "1", '0', gnu)
          .member("next.txt", "2", '0', gnu)
          .member("././@LongLink", "long.txt" + zero + "rest", 'L', gnu)
          .member("././@LongLink", "a link's target" + zero, 'K', gnu)
          .header("link.txt", 0, '2', gnu)
          .member("last.txt", "3", '0', gnu)
          .end(),
      {folder + "/" + longest + ": txt=1", "next: txt=2", "last: txt=3"});
  add("base 256", tar().header("a.txt", 0).patch(124, base256(700)).body(std::string(700, 'x')).end(),
      {"a: txt=" + std::string(700, 'x')});
  add("octal with spaces around it",
      tar()
          .header("a.txt", 0)
          .patch(124, "     000003 ")
          .body("123")
          .header("b.txt", 0)
          .patch(124, "           4")
          .body("1234")
          .end(),
      {"a: txt=123", "b: txt=1234"});
  add("an empty number is zero",
      tar().header("a.txt", 0).patch(124, std::string(12, '\0')).member("b.txt", "1").end(),
      {"a: txt=", "b: txt=1"});

  // pax
  add("pax path, for one member",
      tar()
          .pax('x', pax_record("path=" + folder + "/" + longest + ".txt"))
          .member("s", "1")
          .member("b.txt", "2")
          .end(),
      {folder + "/" + longest + ": txt=1", "b: txt=2"});
  add("pax path above all others",
      tar()
          .member("././@LongLink", "gnu.txt" + zero, 'L', gnu)
          .pax('x', pax_record("path=pax.txt"))
          .header("own.txt", 1, '0', tar::dialect::ustar, "prefix")
          .body("1")
          .end(),
      {"pax: txt=1"}, "the first extension counts");
  add("Solaris X is x", tar().pax('X', pax_record("path=a.txt")).member("s", "1").end(), {"a: txt=1"});
  add("Solaris sparse: the body as it is",
      tar().pax('X', pax_record("SUN.holesdata= 0 9 10")).member("a.bin", "x").end(), {"a: bin=x"});
  add("several x: later records count, earlier ones stay",
      tar()
          .pax('x', pax_record("path=first.txt") + pax_record("size=3"))
          .pax('x', pax_record("path=second.txt"))
          .header("s", 0)
          .body("123")
          .end(),
      {"second: txt=123"}, "the first extension counts");
  add("g, then x, then neither",
      tar()
          .pax('g', pax_record("path=all.txt"))
          .member("a.txt", "1")
          .pax('x', pax_record("path=mine.txt"))
          .member("b.txt", "2")
          .pax('x', pax_record("path="))
          .member("c.txt", "3")
          .pax('g', pax_record("path="))
          .member("d.txt", "4")
          .end(),
      {"all: txt=1", "mine: txt=2", "c: txt=3", "d: txt=4"}, "an empty path is a path");
  add("a size of x, of g, and taken back",
      tar()
          .pax('g', pax_record("size=2"))
          .header("a.txt", 0)
          .body("12")
          .pax('x', pax_record("size=3"))
          .header("b.txt", 0)
          .body("123")
          .pax('x', pax_record("size="))
          .header("c.txt", 1)
          .body("1")
          .pax('g', pax_record("size="))
          .header("d.txt", 4)
          .body("1234")
          .end(),
      {"a: txt=12", "b: txt=123", "c: txt=1", "d: txt=1234"}, "a size of g does not count");
  add("a pax size where the field cannot be read",
      tar().pax('x', pax_record("size=1")).header("a.txt", 0).patch(124, "????????????").body("1").end(),
      {"a: txt=1"}, "is not read");
  add("records that say nothing to us",
      tar()
          .pax('x', pax_record("mtime=1795224938.0143414") + pax_record("uid=5") +
                        pax_record("SCHILY.xattr.user.x=a\nb=c") + pax_record("comment=path=no.txt") +
                        pax_record("hdrcharset=BINARY") + std::string(5, '\0'))
          .member("a.txt", "1")
          .end(),
      {"a: txt=1"});
  add("x and g with nothing in them", tar().pax('g', "").pax('x', "").member("a.txt", "1").end(),
      {"a: txt=1"});
  add("g at the end", tar().member("a.txt", "1").pax('g', pax_record("comment=end")).end(), {"a: txt=1"},
      "an error");
  add("checksums over signed bytes", tar().header("\xe4.txt", 1).seal_signed().body("1").end(),
      {"\xe4: txt=1"});

  // names
  add("names in any encoding, NUL and line feeds in pax",
      tar()
          .member("\xff\xfe.txt", "1")
          .pax('x', pax_record("path=a" + zero + "b.txt"))
          .member("s", "2")
          .pax('x', pax_record("path=a\nb.txt"))
          .member("s", "3")
          .pax('x', pax_record("path=x.y\nb/c.txt"))
          .member("ignored", "4")
          .pax('x', pax_record("path=__a.b__\n"))
          .member("ignored", "5")
          .end(),
      {"\xff\xfe: txt=1", "a" + zero + "b: txt=2", "a\nb: txt=3"});
  add("what ends with a slash is no file", tar().member("a.txt/", "1").member("b.txt", "2").end(),
      {"b: txt=2"});
  add("pax paths end without slashes",
      tar()
          .pax('x', pax_record("path=a.txt//"))
          .member("s", "1")
          .pax('x', pax_record("path=/"))
          .member("own.txt", "2")
          .end(),
      {"a: txt=1"});

  // grouping
  add("consecutive members of one key",
      tar()
          .member("a.jpg", "1")
          .member("a.cls", "2")
          .member("b.jpg", "3")
          .member("README", "-")
          .member("b.seg.PNG", "4")
          .member("a.jpg", "5")
          .end(),
      {"a: jpg=1 cls=2", "b: jpg=3 seg.png=4", "a: jpg=5"});
  add("what is skipped",
      tar()
          .header("folder.d/", 77, '5')
          .header("link.txt", 77, '2')
          .header("hard.txt", 77, '1')
          .header("char.txt", 0, '3')
          .header("block.txt", 0, '4')
          .header("fifo.txt", 0, '6')
          .member("volume.txt", "", 'V', gnu)
          .member("dump.txt", "skipped", 'D', gnu)
          .member("part.txt", "skipped", 'M', gnu)
          .member("__meta.json__", "0")
          .member("__dir__/a.txt", "0")
          .member("____/a.txt", "0")
          .member("__", "0")
          .member("___/b.txt", "1")
          .member("d/__a__.txt", "2")
          .member("no_dot", "0")
          .member(".hidden", "0")
          .member("d.x/.hidden", "0")
          .member("d/.hidden", "3")
          .member("contiguous.", "4", '7')
          .end(),
      {"___/b: txt=1", "d/__a__: txt=2", "d/: hidden=3", "contiguous: =4"});
  add("extensions in letters beyond ASCII", tar().member("a.\xc3\x84\x42", "1").end(), {"a: \xc3\x84\x62=1"},
      "lower-cases them too");
  add("samples that call themselves bad",
      tar()
          .member("a.txt", "1")
          .member("b.txt", "2")
          .member("b.__bad__", "x")
          .member("c.txt", "3")
          .member("c.__bad__", "")
          .member("d.__bad__", "x")
          .end(),
      {"a: txt=1", "c: txt=3 __bad__="});
  add("a bad sample between two of one key",
      tar().member("a.txt", "1").member("b.txt", "2").member("b.__bad__", "x").member("a.txt", "3").end(),
      {"a: txt=1", "a: txt=3"});

  // sparse files that belong to no sample
  add("sparse files that belong to no sample",
      tar()
          .header("sparse", 1, 'S', gnu)
          .patch(482, "\1")
          .body(std::string(504, '\0') + "\1")
          .body(std::string(504, '\0'))
          .body("x")
          .pax('x', pax_record("GNU.sparse.major=1") + pax_record("GNU.sparse.name=s"))
          .member("GNUSparseFile.0/s.bin", "x")
          .member("b.txt", "1")
          .end(),
      {"b: txt=1"});

  // the end
  add("no zero block", tar().member("a.txt", "1"), {"a: txt=1"});
  add("one zero block", tar().member("a.txt", "1").end(1).member("b.txt", "2"), {"a: txt=1"});
  add("nothing in it", tar().end(), {});
  return cases;
}

inline std::vector<tar_case> bad_tar_cases() {
  using tar = raw_tar;
  constexpr auto gnu = tar::dialect::gnu;
  std::vector<tar_case> cases;
  const auto add = [&](std::string name, const std::string& bytes, std::string message, std::uint64_t offset,
                       std::string key = {}) {
    cases.push_back({std::move(name), bytes, {}, std::move(message), offset, std::move(key)});
  };
  const auto whole = tar().member("a.txt", "first").member("d/b.txt", std::string(1000, 'x')).end().bytes;

  add("empty", "", "is empty", 0);
  add("short", "not a tar", "cut off within a header", 0);
  add("not tar", std::string(1024, 'n'), "not a tar archive", 0);
  add("cut in a header", whole.substr(0, 1024 + 100), "cut off within a header", 1024);
  add("cut in a member", whole.substr(0, 1536 + 999), "'d/b.txt' has 1000 bytes, and 999 are left", 1536,
      "d/b.txt");
  add("cut behind a member, in what fills its last block", whole.substr(0, 1536 + 1000),
      "the last block of the member 'd/b.txt' is incomplete", 1536, "d/b.txt");
  add("cut one byte before the next header", whole.substr(0, 1023),
      "the last block of the member 'a.txt' is incomplete", 512, "a.txt");
  add("cut in a member that is skipped", tar().header("no_dot", 600).body("x").bytes, "and 512 are left", 512,
      "no_dot");
  std::string damaged = whole;
  damaged[1024 + 5] = '!';
  add("checksum", damaged, "checksum of a tar header is wrong", 1024);

  add("size that is no number", tar().header("a.txt", 0).patch(124, "0000000000x").end().bytes,
      "not a number", 0, "a.txt");
  add("size below zero, in base 256",
      tar().header("a.txt", 0).patch(124, std::string(12, '\xff')).end().bytes, "negative", 0, "a.txt");
  add("size below zero, in octal", tar().header("a.txt", 0).patch(124, "-0000000001").end().bytes, "negative",
      0, "a.txt");
  add("size above 2^63", tar().header("a.txt", 0).patch(124, base256(~std::uint64_t{0})).end().bytes,
      "not a number", 0, "a.txt");
  add("size of many bits",
      tar().header("a.txt", 0).patch(124, "\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").end().bytes,
      "not a number", 0, "a.txt");
  add("size that brings the end beyond 2^63",
      tar().header("a.txt", 0).patch(124, base256((std::uint64_t{1} << 63) - 512)).end().bytes,
      "larger than any file", 0, "a.txt");
  add("pax size above 2^63",
      tar().pax('x', pax_record("size=9223372036854775808")).member("a.txt", "").end().bytes, "not a number",
      0);
  add("pax size below zero", tar().pax('x', pax_record("size=-1")).member("a.txt", "").end().bytes,
      "not a number", 0);
  add("pax size with something behind it",
      tar().pax('x', pax_record("size=1x")).member("a.txt", "").end().bytes, "not a number", 0);
  add("pax size that is too large",
      tar().pax('x', pax_record("size=9223372036854775807")).member("a.txt", "").end().bytes,
      "larger than any file", 1024, "a.txt");

  add("record longer than the header", tar().pax('x', "99 path=a.txt\n").member("a", "").end().bytes,
      "length is wrong", 0);
  add("record of no length", tar().pax('x', "0 path=a.txt\n").member("a", "").end().bytes, "length is wrong",
      0);
  add("record of a length beyond all",
      tar().pax('x', "99999999999999999999999 path=a.txt\n").member("a", "").end().bytes, "length is wrong",
      0);
  add("record of a negative length", tar().pax('x', "-14 path=a.txt\n").member("a", "").end().bytes,
      "length is wrong", 0);
  add("record without a line feed", tar().pax('x', "14 path=a.txt!").member("a", "").end().bytes,
      "length is wrong", 0);
  add("record without a keyword", tar().pax('x', "7 =abc\n").member("a", "").end().bytes, "without a keyword",
      0);
  add("record without a value", tar().pax('g', "7 abcd\n").member("a", "").end().bytes, "without a keyword",
      0);
  add("extension of more than 1 MiB", tar().header("p", (1u << 20) + 1, 'x').end().bytes,
      "the limit is 1048576", 0);
  add("a name of 10 MB",
      tar()
          .member("././@LongLink", std::string(10'000'000, 'n') + ".txt", 'L', gnu)
          .member("s", "")
          .end()
          .bytes,
      "the limit is 1048576", 0);
  add("extension without a size", tar().header("p", 0, 'g').patch(124, "x").end().bytes, "is not a number",
      0);
  add("cut behind an extension, in what fills its block",
      tar().pax('g', pax_record("comment=x")).bytes.substr(0, 1000), "cut off within an extension header", 0);
  add("cut in an extension", tar().header("p", 2000, 'x').end().bytes, "cut off within an extension header",
      0);
  add("x at the end", tar().member("a.txt", "1").pax('x', pax_record("path=b.txt")).end().bytes,
      "announced by an extension header", 1024);
  add("L at the end", tar().member("n", "b.txt", 'L', gnu).bytes, "announced by an extension header", 0);

  add("two members of one suffix", tar().member("a.txt", "1").member("a.Txt", "2").end().bytes,
      "two members 'txt'", 1024, "a");
  add("a member named as WebDataset's own", tar().member("a.__KEY__", "1").end().bytes, "'__key__'", 0, "a");
  add("another one", tar().member("a.txt", "1").member("a.__url__", "1").end().bytes, "'__url__'", 1024, "a");

  add("GNU sparse, by its name",
      tar().header("a.bin", 1, 'S', gnu).patch(483, "00000001000").body("x").end().bytes,
      "'a.bin' is a sparse file", 0, "a");
  add("pax sparse 0.1, by its name",
      tar()
          .pax('x', pax_record("GNU.sparse.size=9") + pax_record("GNU.sparse.map=0,1"))
          .member("a.bin", "x")
          .end()
          .bytes,
      "'a.bin' is a sparse file", 0, "a");
  add("pax sparse 1.0, by its name",
      tar()
          .pax('x', pax_record("GNU.sparse.major=1") + pax_record("GNU.sparse.minor=0") +
                        pax_record("GNU.sparse.name=d/real.bin") +
                        pax_record("path=GNUSparseFile.0/real.bin"))
          .member("s.bin", "x")
          .end()
          .bytes,
      "'d/real.bin' is a sparse file", 0, "d/real");
  add("cut in the map of a sparse file", tar().header("a.bin", 1, 'S', gnu).patch(482, "\1").bytes,
      "within the map of a sparse file", 512, "a.bin");
  return cases;
}

}  // namespace penstock_test

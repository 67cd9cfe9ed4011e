// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pcre2.h>)
#error "penstock/codec/detail/token_pattern.hpp needs PCRE2: link penstock::pcre2"
#endif

#include <penstock/core/bytes.hpp>

// pcre2.h wants to be told a width; the names that are used here have theirs.
#ifdef PCRE2_CODE_UNIT_WIDTH
#include <pcre2.h>
#else
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#undef PCRE2_CODE_UNIT_WIDTH
#endif

#include <memory>
#include <new>
#include <string>

namespace penstock::inline v0_1::detail {

/// Whose regular expressions a pattern is written in: of the crate regex (tiktoken) or of Oniguruma
/// (tokenizers).
enum class pattern_dialect { rust, onig };

/// Turns a pattern into one that PCRE2 matches alike. Spaces are Unicode's White_Space, which lacks one
/// character that PCRE2 counts; `$` and `^` mean what they mean there. Throws `errc::format` for what cannot
/// be said so.
[[nodiscard]] inline std::string pcre2_pattern(std::string_view pattern, pattern_dialect dialect) {
  constexpr std::string_view space = R"(\p{Z}\t-\r\x{85})";
  const auto refuse = [&](std::string_view what, std::size_t at) {
    throw error(errc::format, {"the pattern has ", what,
                               ", which regular expressions understand differently; "
                               "write what is meant, as in [\\p{L}\\p{N}_] for \\w"})
        .at_offset(at);
  };
  // In Oniguruma {1,2}+ is not possessive, {2}? is not lazy, {,2} begins at 0, and (?i) has the rest of the
  // pattern as its group.
  const auto differs = [](std::string_view rest, bool first) {
    return rest.starts_with("}+") || rest.starts_with("}?") || rest.starts_with("{,") ||
           (rest.starts_with("(?i)") && !first);
  };
  std::string made;
  bool in_class = false;
  std::size_t class_begin = 0;  // where the first member of a class is
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const std::string_view rest = pattern.substr(i);
    if (c == '\\') {
      const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
      const bool letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                          (next >= '0' && next <= '9') || next == '\0';
      ++i;
      if (next == 's') {
        made.append(in_class ? "" : "[").append(space).append(in_class ? "" : "]");
      } else if (next == 'S' && !in_class) {
        made.append("[^").append(space).append("]");
      } else if (next == 'u' && pattern.size() - i > 4 && rest[2] != '{') {
        made.append("\\x{").append(rest.substr(2, 4)).append("}");
        i += 4;
      } else if (next == 'v') {
        made.append("\\x{b}");
      } else if ((letter && std::string_view("dDpPrntfxAz").find(next) == std::string_view::npos) ||
                 (dialect == pattern_dialect::onig && (next == 'p' || next == 'P') &&
                  !rest.substr(2).starts_with('{'))) {  // there \pL is the letters pL
        refuse(rest.substr(0, 2), i - 1);
      } else {
        // with the braces of p{L}
        const std::size_t size = letter && rest.substr(2).starts_with('{') ? rest.find('}') : 1;
        if (size == rest.npos) refuse("a { without }", i + 1);
        made.append(rest.substr(0, size + 1));
        i += size - 1;
      }
    } else if (in_class) {
      if (c == '[' || rest.starts_with("&&") || rest.starts_with("--") || rest.starts_with("~~"))
        refuse(c == '[' ? "[ within a class" : rest.substr(0, 2), i);
      in_class = c != ']' || i == class_begin;
      made += c;
    } else if (c == '[') {
      in_class = true;
      class_begin = i + (rest.starts_with("[^") ? 2 : 1);
      made += c;
    } else if (c == '^') {
      made += dialect == pattern_dialect::rust ? "\\A" : "(?m:^)";
    } else if (c == '$') {
      made += dialect == pattern_dialect::rust ? "\\z" : "(?m:$)";
    } else if (dialect == pattern_dialect::onig && differs(rest, i == 0)) {
      refuse(rest.substr(0, c == '(' ? 4 : 2), i);
    } else if (c == '(' && rest.size() > 1 && (rest[1] == '?' || rest[1] == '*')) {
      bool known = false;
      for (const std::string_view one : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?i:"})
        known = known || rest.starts_with(one);
      if (!known) refuse(rest.substr(0, 3), i);
      made += c;
    } else {
      made += c;
    }
  }
  return made;
}

/// A worker's memory for matches.
class pattern_memory {
 public:
  pattern_memory() = default;

 private:
  friend class token_pattern;
  struct release {
    void operator()(pcre2_match_data_8* one) const noexcept { pcre2_match_data_free_8(one); }
    void operator()(pcre2_match_context_8* one) const noexcept { pcre2_match_context_free_8(one); }
    void operator()(pcre2_jit_stack_8* one) const noexcept { pcre2_jit_stack_free_8(one); }
  };
  std::unique_ptr<pcre2_match_data_8, release> found_;
  std::unique_ptr<pcre2_jit_stack_8, release> stack_;
  std::unique_ptr<pcre2_match_context_8, release> context_;
};

/// A regular expression of PCRE2, compiled to machine code where PCRE2 can. Characters have the properties of
/// the Unicode version that PCRE2 was built with.
class token_pattern {
 public:
  /// Finds nothing: only to be assigned to.
  token_pattern() = default;
  /// A pattern in PCRE2's own language, or a literal text. Throws `errc::format` if it is none.
  explicit token_pattern(std::string_view pattern, bool literal = false) {
    constexpr std::size_t longest = 16 << 10;
    if (pattern.size() > longest) throw error(errc::limit, {"a pattern has at most ", longest, " bytes"});
    int fault = 0;
    PCRE2_SIZE at = 0;
    const std::unique_ptr<pcre2_compile_context_8, release> context(pcre2_compile_context_create_8(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline_8(context.get(), PCRE2_NEWLINE_LF);
    code_.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                                PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C),
                                &fault, &at, context.get()));
    if (!code_) {
      char said[256] = {};
      pcre2_get_error_message_8(fault, reinterpret_cast<PCRE2_UCHAR8*>(said), sizeof said);
      throw error(errc::format, {"PCRE2 does not take the pattern: ", said}).at_offset(at);
    }
    jit_ = pcre2_jit_compile_8(code_.get(), PCRE2_JIT_COMPLETE) == 0;
  }

  /// A match: bytes of a text.
  struct match {
    std::size_t begin = 0, end = 0;
  };
  /// Finds the first match at or behind `from`, in text that is UTF-8; false if there is none. Throws
  /// `errc::limit` where a match takes too many steps.
  [[nodiscard]] bool find(std::string_view text, std::size_t from, match& found,
                          pattern_memory& memory) const {
    if (!memory.found_) prepare(memory);
    const int result = run(text, from, memory);
    if (result < 0) return result != PCRE2_ERROR_NOMATCH && refuse(result);
    const PCRE2_SIZE* const places = pcre2_get_ovector_pointer_8(memory.found_.get());
    found = {places[0], places[1]};
    return true;
  }

 private:
  struct release {
    void operator()(pcre2_code_8* one) const noexcept { pcre2_code_free_8(one); }
    void operator()(pcre2_compile_context_8* one) const noexcept { pcre2_compile_context_free_8(one); }
  };

  [[nodiscard]] int run(std::string_view text, std::size_t from,
                        const pattern_memory& memory) const noexcept {
    const auto* const subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
    return jit_ ? pcre2_jit_match_8(code_.get(), subject, text.size(), from, 0, memory.found_.get(),
                                    memory.context_.get())
                : pcre2_match_8(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                memory.found_.get(), memory.context_.get());
  }
  [[gnu::cold]] static void prepare(pattern_memory& memory) {
    constexpr std::size_t first = 32 << 10, most = 16 << 20;
    constexpr std::uint32_t steps = 10'000'000, heap_kilobytes = 64 << 10;
    memory.found_.reset(pcre2_match_data_create_8(1, nullptr));
    memory.context_.reset(pcre2_match_context_create_8(nullptr));
    memory.stack_.reset(pcre2_jit_stack_create_8(first, most, nullptr));
    if (!memory.found_ || !memory.context_) throw std::bad_alloc();
    pcre2_set_match_limit_8(memory.context_.get(), steps);
    pcre2_set_heap_limit_8(memory.context_.get(), heap_kilobytes);
    // Without a stack of its own, where PCRE2 has no machine code, this does nothing.
    pcre2_jit_stack_assign_8(memory.context_.get(), nullptr, memory.stack_.get());
  }
  [[noreturn, gnu::cold]] static bool refuse(int fault) {
    if (fault == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    char said[256] = {};
    pcre2_get_error_message_8(fault, reinterpret_cast<PCRE2_UCHAR8*>(said), sizeof said);
    throw error(errc::limit, {"the pattern takes too long on this text (PCRE2: ", said,
                              "); it backtracks too much, or the text has one word of megabytes"});
  }

  std::unique_ptr<pcre2_code_8, release> code_;
  bool jit_ = false;
};

}  // namespace penstock::inline v0_1::detail

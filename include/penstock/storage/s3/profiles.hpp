// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/profiles.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/environment.hpp>

#include <cerrno>
#include <fstream>

namespace penstock::inline v0_1::detail::s3 {

struct ini_entry {
  std::string name;  // in lower case
  std::string value;
  std::vector<name_value> inner;  // the lines that are indented below an entry without a value
};
struct ini_section {
  std::string name;
  std::vector<ini_entry> entries;

  /// The last entry of that name counts, as in the tools of AWS.
  [[nodiscard]] const ini_entry* find(std::string_view name_of) const noexcept {
    for (auto one = entries.rbegin(); one != entries.rend(); ++one)
      if (one->name == name_of) return &*one;
    return nullptr;
  }
};

/// Reads the files ~/.aws/config and ~/.aws/credentials: sections, entries, and entries within an entry.
/// Its errors name the line, and show nothing of it: it may be a secret.
class ini_reader {
 public:
  ini_reader(std::string_view rest, std::string_view path) : rest_(rest), path_(path) {}

  [[nodiscard]] std::vector<ini_section> read() {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; };
      if (std::ranges::any_of(line, is_control)) fail("has a control character");
      take_line(line);
    }
    return std::move(sections_);
  }

 private:
  static constexpr std::size_t max_sections = 4096;

  [[noreturn]] void fail(std::string_view why) const {
    throw error(errc::argument, {"line ", number_, " of this file of AWS profiles ", why}).in_file(path_);
  }
  /// Without what follows a blank and a '#' or ';'.
  static std::string_view without_comment(std::string_view line) {
    for (std::size_t i = 1; i < line.size(); ++i)
      if ((line[i] == '#' || line[i] == ';') && is_blank(line[i - 1])) return trimmed(line.substr(0, i));
    return trimmed(line);
  }

  void take_line(std::string_view line) {
    const std::string_view bare = trimmed(line);
    if (bare.empty() || bare.front() == '#' || bare.front() == ';') return;
    const auto indent = static_cast<std::size_t>(bare.data() - line.data());
    if (in_entry_ && indent > indent_) return take_inner(bare);
    in_entry_ = false;
    if (bare.front() == '[') return begin_section(bare);
    if (sections_.empty()) fail("comes before the first [section]");
    const std::size_t sign = bare.find('=');
    if (sign == std::string_view::npos) fail("is neither a [section] nor name = value");
    const std::string_view name = trimmed(bare.substr(0, sign));
    if (name.empty()) fail("has no name before its '='");
    sections_[current_].entries.push_back(
        {lowered(name), std::string(without_comment(bare.substr(sign + 1))), {}});
    indent_ = indent;
    in_entry_ = true;
  }
  void take_inner(std::string_view bare) {
    ini_entry& last = sections_[current_].entries.back();
    const std::size_t sign = bare.find('=');
    if (!last.value.empty()) {
      last.value.append("\n").append(bare);
    } else if (sign == std::string_view::npos || sign == 0) {
      fail("is indented, but no name = value");
    } else {
      last.inner.push_back(
          {lowered(trimmed(bare.substr(0, sign))), std::string(without_comment(bare.substr(sign + 1)))});
    }
  }
  void begin_section(std::string_view bare) {
    const std::size_t end = bare.find(']');
    if (end == std::string_view::npos) fail("begins a section that has no ']'");
    const std::string_view rest = trimmed(bare.substr(end + 1));
    if (!rest.empty() && rest.front() != '#' && rest.front() != ';') fail("has text behind its ']'");
    const std::string_view name = trimmed(bare.substr(1, end - 1));
    if (name.empty()) fail("begins a section without a name");
    for (current_ = 0; current_ < sections_.size(); ++current_)
      if (sections_[current_].name == name) return;
    if (sections_.size() == max_sections) fail("begins one section too many");
    sections_.push_back({std::string(name), {}});
  }

  std::string_view rest_, path_;
  std::vector<ini_section> sections_;
  std::size_t current_ = 0, indent_ = 0, number_ = 0;
  bool in_entry_ = false;
};

/// A small text file as a whole; nothing if there is none. Throws errc::io, marked recurring, for one that
/// cannot be read or is larger than a MiB.
[[nodiscard]] inline std::optional<std::string> small_file(const std::string& path) {
  constexpr std::size_t maximum = std::size_t{1} << 20;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw error(errc::io, "cannot open this file of credentials: check its permissions")
        .in_file(path)
        .recurring();
  }
  std::string bytes(maximum + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.bad()) throw error(errc::io, "cannot read this file of credentials").in_file(path).recurring();
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > maximum)
    throw error(errc::io, "this file of credentials is larger than a MiB").in_file(path).recurring();
  return bytes;
}

/// The profiles of ~/.aws/credentials and ~/.aws/config, or of the files that AWS_SHARED_CREDENTIALS_FILE and
/// AWS_CONFIG_FILE name. A file that is not there has none. What both have, the file of credentials decides.
/// Source: AWS SDKs and Tools Reference Guide, "Using shared config and credentials files".
class profile_files {
 public:
  profile_files() = default;
  /// Reads both. Throws errc::argument for a malformed line, with file and line, and errc::io for a file that
  /// cannot be read.
  explicit profile_files(const s3_environment& environment) {
    credentials_path_ = path_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    config_path_ = path_of(environment, "AWS_CONFIG_FILE", "config");
    credentials_ = sections_of(credentials_path_);
    config_ = sections_of(config_path_);
  }

  [[nodiscard]] bool has(std::string_view profile) const noexcept {
    return in_credentials(profile) != nullptr || in_config(profile) != nullptr;
  }
  [[nodiscard]] std::optional<std::string_view> value(std::string_view profile, std::string_view name) const {
    for (const ini_section* section : {in_credentials(profile), in_config(profile)})
      if (const ini_entry* const found = section == nullptr ? nullptr : section->find(name))
        if (!found->value.empty()) return found->value;
    return std::nullopt;
  }
  /// `endpoint_url` of a service in the section of services that the profile names, or of the profile.
  [[nodiscard]] std::optional<std::string_view> endpoint(std::string_view profile,
                                                         std::string_view service) const {
    if (const auto services = value(profile, "services")) {
      const ini_section* const section = section_of(config_, "services", *services);
      if (section == nullptr)
        throw error(errc::argument, {"the profile '", profile, "' names the services '", *services,
                                     "', but there is no section [services ", *services, "]"})
            .in_file(config_path_);
      if (const ini_entry* const found = section->find(service))
        for (const name_value& one : found->inner)
          if (one.name == "endpoint_url" && !one.value.empty()) return one.value;
    }
    return value(profile, "endpoint_url");
  }

  /// Both files, for messages.
  [[nodiscard]] std::string paths() const { return text({credentials_path_, " and ", config_path_}); }

 private:
  static std::string path_of(const s3_environment& environment, std::string_view variable,
                             std::string_view file_name) {
    const std::string home(environment.value("HOME").value_or(""));
    const auto given = environment.value(variable);
    if (!given) return text({home, "/.aws/", file_name});
    return given->starts_with("~/") ? home + std::string(given->substr(1)) : std::string(*given);
  }
  static std::vector<ini_section> sections_of(const std::string& path) {
    const auto bytes = small_file(path);
    if (!bytes) return {};
    return ini_reader(*bytes, path).read();
  }

  /// The section `[kind name]`; the name may be in quotes.
  static const ini_section* section_of(const std::vector<ini_section>& sections, std::string_view kind,
                                       std::string_view name) noexcept {
    for (const ini_section& one : sections) {
      std::string_view rest = one.name;
      if (!rest.starts_with(kind) || rest.size() == kind.size() || !is_blank(rest[kind.size()])) continue;
      rest = trimmed(rest.substr(kind.size()));
      if (rest.size() > 1 && (rest.front() == '"' || rest.front() == '\'') && rest.front() == rest.back())
        rest = rest.substr(1, rest.size() - 2);
      if (rest == name) return &one;
    }
    return nullptr;
  }
  static const ini_section* named(const std::vector<ini_section>& sections, std::string_view name) noexcept {
    const auto found = std::ranges::find(sections, name, &ini_section::name);
    return found == sections.end() ? nullptr : &*found;
  }
  [[nodiscard]] const ini_section* in_credentials(std::string_view profile) const noexcept {
    return named(credentials_, profile);
  }
  [[nodiscard]] const ini_section* in_config(std::string_view profile) const noexcept {
    const ini_section* const found = section_of(config_, "profile", profile);
    return found == nullptr && profile == "default" ? named(config_, profile) : found;
  }

  std::string credentials_path_, config_path_;
  std::vector<ini_section> credentials_, config_;
};

/// The profile that counts: `chosen`, else AWS_PROFILE, else `default`. Throws errc::argument for one that no
/// file has.
[[nodiscard]] inline std::string profile_name(const s3_environment& environment, const profile_files& files,
                                              std::string_view chosen = {}) {
  const auto given = environment.value("AWS_PROFILE");
  if (chosen.empty() && !given) return "default";
  if (!chosen.empty() && !files.has(chosen))
    throw error(errc::argument, {"the profile '", chosen, "' is not in ", files.paths()});
  if (chosen.empty() && !files.has(*given))
    throw error(errc::argument,
                {"AWS_PROFILE names the profile '", *given, "', which is not in ", files.paths()});
  return std::string(chosen.empty() ? *given : chosen);
}

}  // namespace penstock::inline v0_1::detail::s3

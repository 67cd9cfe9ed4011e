// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/profiles.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/environment.hpp>
#include <penstock/storage/s3/requests/ini.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail::s3 {

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
  [[nodiscard]] const ini_section* in_credentials(std::string_view profile) const noexcept {
    for (const ini_section& one : credentials_)
      if (one.name == profile) return &one;
    return nullptr;
  }
  [[nodiscard]] const ini_section* in_config(std::string_view profile) const noexcept {
    if (const ini_section* const found = section_of(config_, "profile", profile)) return found;
    if (profile == "default")
      for (const ini_section& one : config_)
        if (one.name == "default") return &one;
    return nullptr;
  }

  std::string credentials_path_, config_path_;
  std::vector<ini_section> credentials_, config_;
};

/// The profile that counts: AWS_PROFILE, or `default`. Throws errc::argument if AWS_PROFILE names one that no
/// file has.
[[nodiscard]] inline std::string profile_name(const s3_environment& environment, const profile_files& files) {
  const auto given = environment.value("AWS_PROFILE");
  if (!given) return "default";
  if (!files.has(*given))
    throw error(errc::argument,
                {"AWS_PROFILE names the profile '", *given, "', which is not in ", files.paths()});
  return std::string(*given);
}

}  // namespace penstock::inline v0_1::detail::s3

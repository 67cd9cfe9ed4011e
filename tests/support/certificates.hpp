// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/external_program.hpp"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace penstock_test {

/// What is right or wrong with a server's certificate.
enum class certificate {
  good,         ///< for localhost, 127.0.0.1 and ::1, signed by the test's authority
  self_signed,  ///< for the same names, signed by itself
  expired,      ///< for the same names, by the authority, for a day in 2020
  other_host,   ///< by the authority, for other.example
};

[[nodiscard]] inline std::string name_of(certificate kind) {
  switch (kind) {
    case certificate::good:
      return "good";
    case certificate::self_signed:
      return "self_signed";
    case certificate::expired:
      return "expired";
    case certificate::other_host:
      return "other_host";
  }
  return {};
}

/// Whether the `openssl` program is here; see `have_program`.
[[nodiscard]] inline bool have_openssl() { return have_program("openssl", "openssl version"); }

/// An authority made for one test, and certificates that it signs, made by the `openssl` program in a folder
/// that exists. Throws std::runtime_error with its output if it fails.
class test_authority {
 public:
  explicit test_authority(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::ofstream(folder_ / "openssl.conf") << "[ca]\n"
                                               "default_ca = authority\n"
                                               "[authority]\n"
                                               "dir = "
                                            << folder_.string()
                                            << "\n"
                                               "new_certs_dir = $dir\n"
                                               "database = $dir/index\n"
                                               "serial = $dir/serial\n"
                                               "default_md = sha256\n"
                                               "policy = any\n"
                                               "unique_subject = no\n"
                                               "[any]\n"
                                               "commonName = supplied\n"
                                               "[req]\n"
                                               "distinguished_name = names\n"
                                               "[names]\n"
                                               "[root]\n"
                                               "basicConstraints = critical, CA:TRUE\n"
                                               "keyUsage = critical, keyCertSign, cRLSign\n"
                                               "subjectKeyIdentifier = hash\n"
                                               "[here]\n"
                                               "basicConstraints = CA:FALSE\n"
                                               "subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1\n"
                                               "[elsewhere]\n"
                                               "basicConstraints = CA:FALSE\n"
                                               "subjectAltName = DNS:other.example\n";
    std::ofstream(folder_ / "index");
    std::ofstream(folder_ / "serial") << "1000\n";
    call("req -x509 -new " + key("authority") +
         " -subj '/CN=Penstock test authority' -days 30 -extensions root" + " -out " + path("authority.pem"));
  }

  /// What a client must trust.
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "authority.pem"; }

  /// Makes `<kind>.pem` and `<kind>.key`, and returns the path without its ending.
  std::filesystem::path make(certificate kind) {
    const std::string name = name_of(kind);
    const std::string host = kind == certificate::other_host ? "other.example" : "localhost";
    if (kind == certificate::self_signed) {
      call("req -x509 -new " + key(name) + " -subj /CN=" + host + " -days 30 -extensions here -out " +
           path(name + ".pem"));
    } else {
      call("req -new " + key(name) + " -subj /CN=" + host + " -out " + path(name + ".request"));
      const std::string time =
          kind == certificate::expired ? "-startdate 20200101000000Z -enddate 20200102000000Z" : "-days 30";
      call("ca -batch -notext " + time + " -cert " + path("authority.pem") + " -keyfile " +
           path("authority.key") + " -extensions " +
           (kind == certificate::other_host ? "elsewhere" : "here") + " -in " + path(name + ".request") +
           " -out " + path(name + ".pem"));
    }
    return folder_ / name;
  }

 private:
  [[nodiscard]] std::string path(const std::string& name) const {
    return "'" + (folder_ / name).string() + "'";
  }
  [[nodiscard]] std::string key(const std::string& name) const {
    return "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + path(name + ".key");
  }
  void call(const std::string& arguments) const {
    const std::size_t name = arguments.find(' ');
    const program_result done = run_program("openssl " + arguments.substr(0, name) + " -config " +
                                            path("openssl.conf") + arguments.substr(name));
    if (done.status != 0) throw std::runtime_error("openssl " + arguments + ": " + done.output);
  }

  std::filesystem::path folder_;
};

}  // namespace penstock_test

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Panels of lines, one below the other over one x axis that begins at 0, as SVG. There is no background, and
/// each colour can be told from white and from black. Lines of one number have the same colour in each panel.
class line_chart {
 public:
  using points = std::vector<std::pair<double, double>>;

  line_chart(std::string title, std::string subtitle, std::string x_name, double x_end)
      : title_(std::move(title)), subtitle_(std::move(subtitle)), x_name_(std::move(x_name)), x_end_(x_end) {}

  /// Lines that are added after this are in this panel, which shows what is from 0 to `top` at least.
  void panel(std::string heading, double top) {
    const double step = step_of(top);
    panels_.push_back({std::move(heading), step, std::ceil(top / step - 1e-9) * step, {}, {}});
  }
  void line(points all) { panels_.back().lines.push_back(std::move(all)); }
  /// A level with a name, in the panel.
  void level(double y, std::string name) { panels_.back().levels.emplace_back(y, std::move(name)); }

  /// `names`: what the lines are.
  [[nodiscard]] std::string svg(const std::vector<std::string>& names) const {
    const double height = first_panel + static_cast<double>(panels_.size()) * (panel_height + gap) + 12;
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " +
                      number(height) + "\" width=\"" + number(width) + "\" height=\"" + number(height) +
                      "\" font-family=\"system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif\" "
                      "role=\"img\">\n<title>" +
                      escaped(title_) + "</title>\n";
    out += text(left, 26, title_, "start", "font-size=\"16\" font-weight=\"600\"");
    out += text(left, 46, subtitle_, "start");
    for (double x = left; const std::string& name : names) {
      const auto kind = static_cast<std::size_t>(&name - names.data());
      out += "<path d=\"M" + number(x) + " 66h34\" " + stroke(kind) + "/>\n";
      out += text(x + 42, 70, name, "start");
      x += 66 + 7 * static_cast<double>(name.size());
    }
    for (std::size_t i = 0; i < panels_.size(); ++i)
      draw(out, panels_[i], first_panel + static_cast<double>(i) * (panel_height + gap),
           i + 1 == panels_.size());
    return out + "</svg>\n";
  }

  /// 1, 2 or 5 times a power of ten, of which at most five are in `top`.
  static double step_of(double top) {
    double step = std::pow(10, std::floor(std::log10(std::max(top, 1e-9) / 5)));
    for (const double times : {2.0, 2.5, 2.0})
      if (top / step > 5 + 1e-9) step *= times;
    return step;
  }

 private:
  struct panel_of_lines {
    std::string heading;
    double step, top;
    std::vector<points> lines;
    std::vector<std::pair<double, std::string>> levels;
  };

  static constexpr double width = 760, left = 56, right = width - 24, first_panel = 112, panel_height = 190,
                          gap = 52;
  static constexpr std::string_view grey = "#727a85";

  static std::string number(double value) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.6g", std::round(value * 100) / 100);
    return digits.data();
  }
  static std::string escaped(const std::string& words) {
    std::string safe;
    for (const char c : words) {
      if (c == '&')
        safe += "&amp;";
      else if (c == '<')
        safe += "&lt;";
      else
        safe += c;
    }
    return safe;
  }
  static std::string stroke(std::size_t kind) {
    constexpr std::array<std::string_view, 2> styles = {"#2f81f7\"", "#c96a00\" stroke-dasharray=\"7 4\""};
    return "fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\" stroke=\"" +
           std::string(styles[kind % styles.size()]);
  }
  static std::string text(double x, double y, const std::string& words, const std::string& anchor,
                          const std::string& font = "font-size=\"13\"") {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" fill=\"" + std::string(grey) +
           "\" text-anchor=\"" + anchor + "\" " + font + ">" + escaped(words) + "</text>\n";
  }
  /// A straight line of the axes or the grid.
  static std::string rule(const std::string& path, const std::string& style) {
    return "<path d=\"" + path + "\" stroke=\"" + std::string(grey) + "\" " + style + "/>\n";
  }

  void draw(std::string& out, const panel_of_lines& what, double upper, bool names_x) const {
    const double lower = upper + panel_height;
    const auto at_x = [&](double x) { return left + (right - left) * x / x_end_; };
    const auto at_y = [&](double y) { return lower - panel_height * y / what.top; };
    const std::string across = "h" + number(right - left), faint = "stroke-opacity=\"0.3\"";
    out += text(left, upper - 12, what.heading, "start", "font-size=\"13\" font-weight=\"600\"");
    for (double y = 0; y <= what.top + what.step / 2; y += what.step) {
      out += rule("M" + number(left) + " " + number(at_y(y)) + across, y > 0 ? faint : "");
      out += text(left - 8, at_y(y) + 4.5, number(y), "end");
    }
    const double x_step = std::max(1.0, step_of(x_end_ / 2));
    for (double x = 0; x <= x_end_; x += x_step) {
      out += rule("M" + number(at_x(x)) + " " + number(upper) + "V" + number(lower), faint);
      out += text(at_x(x), lower + 18, number(x), "middle");
    }
    if (names_x) out += text((left + right) / 2, lower + 38, x_name_, "middle");
    for (const auto& [y, name] : what.levels) {
      out += rule("M" + number(left) + " " + number(at_y(y)) + across, "stroke-dasharray=\"2 3\"");
      out += text(right - 4, at_y(y) - 6, name, "end");
    }
    for (std::size_t kind = 0; kind < what.lines.size(); ++kind) {
      std::string path;
      for (const auto& [x, y] : what.lines[kind])
        path += (path.empty() ? "" : " ") + number(at_x(x)) + "," + number(at_y(y));
      out += "<polyline points=\"" + path + "\" " + stroke(kind) + "/>\n";
    }
  }

  std::string title_, subtitle_, x_name_;
  double x_end_;
  std::vector<panel_of_lines> panels_;
};

// A reader of JSON, for the tables of testdata.
#ifndef JSON_HPP
#define JSON_HPP

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// A value of JSON. Numbers keep their text.
struct json {
    enum kind_of { null, boolean, number, string, array, object };

    kind_of kind = null;
    // The text of a number or string; "true" or "false".
    std::string text;
    std::vector<json> items;
    std::vector<std::pair<std::string, json>> fields;

    // Returns the field of an object, or null if it has no such field.
    const json *find(const std::string &name) const {
        for (const auto &[field, value] : fields) {
            if (field == name) return &value;
        }
        return nullptr;
    }

    const json &operator[](const std::string &name) const {
        const json *found = find(name);
        if (found == nullptr) throw std::runtime_error("JSON: no field " + name);
        return *found;
    }

    bool is_true() const { return kind == boolean && text == "true"; }
    unsigned long long u64() const { return std::strtoull(text.c_str(), nullptr, 10); }
};

class json_reader {
  public:
    static json read_file(const std::string &path) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot read " + path);
        std::string text{std::istreambuf_iterator<char>(file), {}};
        return json_reader(text).value();
    }

  private:
    explicit json_reader(const std::string &text) : text_(text) {}

    char peek() {
        while (at_ < text_.size() && std::string(" \n\r\t").find(text_[at_]) != std::string::npos) {
            at_++;
        }
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    void expect(char wanted) {
        if (peek() != wanted) {
            throw std::runtime_error("JSON: no " + std::string(1, wanted) + " at byte " +
                                     std::to_string(at_));
        }
        at_++;
    }

    json value() {
        json value;
        switch (peek()) {
            case '{': read_object(value); break;
            case '[': read_array(value); break;
            case '"':
                value.kind = json::string;
                value.text = string();
                break;
            default: read_word(value);
        }
        return value;
    }

    void read_object(json &value) {
        value.kind = json::object;
        for (expect('{'); peek() != '}';) {
            if (!value.fields.empty()) expect(',');
            peek();
            std::string name = string();
            expect(':');
            value.fields.emplace_back(std::move(name), this->value());
        }
        expect('}');
    }

    void read_array(json &value) {
        value.kind = json::array;
        for (expect('['); peek() != ']';) {
            if (!value.items.empty()) expect(',');
            value.items.push_back(this->value());
        }
        expect(']');
    }

    void read_word(json &value) {
        while (at_ < text_.size() && std::string(",]} \n").find(text_[at_]) == std::string::npos) {
            value.text += text_[at_++];
        }
        bool is_word = value.text == "true" || value.text == "false";
        value.kind = value.text == "null" ? json::null : is_word ? json::boolean : json::number;
    }

    std::string string() {
        std::string found;
        for (expect('"'); text_.at(at_) != '"'; at_++) {
            if (text_[at_] != '\\') {
                found += text_[at_];
            } else {
                read_escape(found);
            }
        }
        at_++;
        return found;
    }

    // Reads an escape sequence. Leaves the position at its last character.
    void read_escape(std::string &into) {
        const std::string names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        char name = text_.at(++at_);
        if (name != 'u') {
            into += meanings.at(names.find(name));
            return;
        }
        unsigned long code = std::stoul(text_.substr(at_ + 1, 4), nullptr, 16);
        at_ += 4;
        if (code >= 0xd800 && code < 0xdc00) {
            unsigned long low = std::stoul(text_.substr(at_ + 3, 4), nullptr, 16);
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at_ += 6;
        }
        append_utf8(into, code);
    }

    static void append_utf8(std::string &into, unsigned long code) {
        if (code < 0x80) {
            into += static_cast<char>(code);
            return;
        }
        int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
        into += static_cast<char>(heads[more] | (code >> (6 * more)));
        while (more-- > 0) into += static_cast<char>(0x80 | ((code >> (6 * more)) & 0x3f));
    }

    const std::string &text_;
    std::size_t at_ = 0;
};

#endif

/**
 * @file
 * Thin C++17 over the C interface: owners instead of destroy calls, exceptions instead of status codes, views instead of pointer and
 * length. Header only; nothing is hidden: every owner gives its C handle by get().
 *
 *     hurray::Loader loader("model.safetensors");
 *     hurray::TensorSet set = loader.load();
 *     for (std::uint64_t i = 0; i < set.size(); i++) use(set.name(i), set.tensor(i).buffer(0).data());
 *
 * Threads, life times, errors: as the C functions say. A hurray::Error carries the whole record.
 */
#ifndef HURRAY_HPP
#define HURRAY_HPP

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hurray.h"
#include "hurray/cuda.h"
#include "hurray/dense.h"
#include "hurray/destination.h"
#include "hurray/import.h"
#include "hurray/loader.h"
#include "hurray/transport.h"

namespace hurray {

/** A failed call: code() is its status, record() what the library said about it. */
class Error : public std::exception {
public:
    explicit Error(HurrayStatus status) : record_{} {
        record_.struct_size = sizeof record_;
        record_.code = status;
        record_.offset = record_.tensor_index = HURRAY_NONE;
        describe();
    }
    explicit Error(const HurrayError &record) : record_(record) { describe(); }
    HurrayStatus code() const noexcept { return record_.code; }
    const HurrayError &record() const noexcept { return record_; }
    const char *what() const noexcept override { return text_.c_str(); }

private:
    void describe() {
        text_ = hurray_status_name(record_.code);
        for (const char *part : {record_.source, record_.tensor, record_.field, record_.message})
            if (*part) text_.append(": ").append(part);
    }
    HurrayError record_;
    std::string text_;
};

/** Throws unless the call succeeded. The second form takes the record that the call filled. */
inline void check(HurrayStatus status) {
    if (status != HURRAY_OK) throw Error(status);
}
inline void check(HurrayStatus status, const HurrayError &record) {
    if (status != HURRAY_OK) throw Error(record);
}
inline void check(HurrayStatus status, const HurrayError *record) {
    if (status == HURRAY_OK) return;
    if (record && record->code == status) throw Error(*record);
    throw Error(status);
}

/** A struct of the C interface with struct_size set and everything else zero. */
template <typename Struct> Struct sized() {
    Struct value{};
    value.struct_size = sizeof value;
    return value;
}
inline HurrayLoaderOptions loader_options() {
    auto options = sized<HurrayLoaderOptions>();
    options.device_index = -1;
    return options;
}
inline HurrayCudaOptions cuda_options() {
    auto options = sized<HurrayCudaOptions>();
    options.device_index = -1;
    return options;
}
inline HurrayHostOptions host_options() {
    auto options = sized<HurrayHostOptions>();
    options.numa_node = -1;
    return options;
}

namespace detail {
template <typename Handle, HurrayStatus (*Destroy)(Handle **)> struct Destroyer {
    void operator()(Handle *handle) const noexcept { Destroy(&handle); }
};
template <typename Handle, HurrayStatus (*Destroy)(Handle **)> using Owner = std::unique_ptr<Handle, Destroyer<Handle, Destroy>>;
inline std::string_view view(const std::uint8_t *text, std::size_t len) { return {reinterpret_cast<const char *>(text), text ? len : 0}; }
} // namespace detail

/** A transport until a handle takes it; then release() it from here. */
class Transport {
public:
    static Transport file(const char *path) { return make([&](auto *out, auto *e) { return hurray_transport_file(path, nullptr, out, e); }); }
    static Transport mapped(const char *path) { return make([&](auto *out, auto *e) { return hurray_transport_mapped(path, nullptr, out, e); }); }
    static Transport create(const char *path) { return make([&](auto *out, auto *e) { return hurray_transport_create(path, nullptr, out, e); }); }
    static Transport fd(int fd) { return make([&](auto *out, auto *e) { return hurray_transport_fd(fd, nullptr, out, e); }); }
    static Transport memory(const void *data, std::size_t len) {
        return make([&](auto *out, auto *e) { return hurray_transport_memory(data, len, nullptr, nullptr, nullptr, out, e); });
    }
    explicit Transport(const HurrayTransport &transport) : transport_(transport), owned_(true) {}
    Transport(Transport &&other) noexcept : transport_(other.transport_), owned_(std::exchange(other.owned_, false)) {}
    Transport &operator=(Transport &&other) noexcept {
        std::swap(transport_, other.transport_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~Transport() {
        if (owned_) hurray_transport_release(&transport_);
    }
    HurrayTransport *get() noexcept { return &transport_; }
    void release() noexcept { owned_ = false; } /**< a handle has taken it over */

private:
    template <typename Make> static Transport make(Make make) {
        HurrayTransport transport{};
        auto error = sized<HurrayError>();
        check(make(&transport, &error), error);
        return Transport(transport);
    }
    HurrayTransport transport_;
    bool owned_;
};

/** The maker's hold on a destination. */
class Destination {
public:
    static Destination host(const HurrayHostOptions &options = host_options()) {
        return make([&](auto *out, auto *e) { return hurray_destination_host(&options, out, e); });
    }
    static Destination in_place(Transport &source) { return make([&](auto *out, auto *e) { return hurray_destination_in_place(source.get(), out, e); }); }
    static Destination cuda(const HurrayCudaOptions &options = cuda_options()) {
        return make([&](auto *out, auto *e) { return hurray_destination_cuda(&options, out, e); });
    }
    Destination(Destination &&other) noexcept : destination_(other.destination_) { other.destination_ = {}; }
    Destination &operator=(Destination &&other) noexcept {
        std::swap(destination_, other.destination_);
        return *this;
    }
    ~Destination() {
        if (destination_.struct_size) hurray_destination_release(&destination_);
    }
    const HurrayDestinationAlloc *get() const noexcept { return &destination_; }

private:
    template <typename Make> static Destination make(Make make) {
        auto destination = sized<HurrayDestinationAlloc>();
        auto error = sized<HurrayError>();
        check(make(&destination, &error), error);
        return Destination(destination);
    }
    explicit Destination(const HurrayDestinationAlloc &destination) : destination_(destination) {}
    HurrayDestinationAlloc destination_;
};

/** A borrowed buffer. */
class Buffer {
public:
    explicit Buffer(HurrayBuffer *buffer) : buffer_(buffer) {}
    void *data() const {
        void *data = nullptr;
        check(hurray_buffer_data_ptr(buffer_, &data));
        return data;
    }
    template <typename T> T *as() const { return static_cast<T *>(data()); }
    std::uint64_t size() const {
        std::uint64_t size = 0;
        check(hurray_buffer_byte_size(buffer_, &size));
        return size;
    }
    std::uint8_t device_tag() const {
        std::uint8_t tag = 0;
        check(hurray_buffer_device_tag(buffer_, &tag));
        return tag;
    }
    std::int32_t device_index() const {
        std::int32_t index = -1;
        check(hurray_buffer_device_index(buffer_, &index));
        return index;
    }
    std::uint32_t flags() const {
        std::uint32_t flags = 0;
        check(hurray_buffer_flags(buffer_, &flags));
        return flags;
    }
    void order(void *stream) const { check(hurray_buffer_order(buffer_, stream)); }
    HurrayBuffer *get() const noexcept { return buffer_; }

private:
    HurrayBuffer *buffer_;
};

/** A borrowed descriptor. */
class Descriptor {
public:
    explicit Descriptor(const HurrayDescriptor *descriptor) : descriptor_(descriptor) {}
    std::vector<std::uint64_t> shape() const {
        std::uint64_t dims[HURRAY_MAX_RANK];
        std::size_t rank = HURRAY_MAX_RANK;
        check(hurray_descriptor_shape(descriptor_, dims, &rank));
        return {dims, dims + rank};
    }
    std::uint8_t element_type() const {
        std::uint8_t tag = 0;
        check(hurray_descriptor_element_type_tag(descriptor_, &tag));
        return tag;
    }
    std::uint8_t layout() const {
        std::uint8_t tag = 0;
        check(hurray_descriptor_layout_tag(descriptor_, &tag));
        return tag;
    }
    std::uint32_t buffer_count() const {
        std::uint32_t count = 0;
        check(hurray_descriptor_buffer_count(descriptor_, &count));
        return count;
    }
    const HurrayDescriptor *get() const noexcept { return descriptor_; }

private:
    const HurrayDescriptor *descriptor_;
};

/** Owns a descriptor made from a spec. */
class NewDescriptor {
public:
    explicit NewDescriptor(const HurrayDescriptorSpec &spec) {
        HurrayDescriptor *descriptor = nullptr;
        auto error = sized<HurrayError>();
        check(hurray_descriptor_new(&spec, nullptr, &descriptor, &error), error);
        descriptor_.reset(descriptor);
    }
    Descriptor view() const { return Descriptor(descriptor_.get()); }
    const HurrayDescriptor *get() const noexcept { return descriptor_.get(); }

private:
    struct Destroy {
        void operator()(HurrayDescriptor *descriptor) const noexcept { hurray_descriptor_destroy(descriptor); }
    };
    std::unique_ptr<HurrayDescriptor, Destroy> descriptor_;
};

/** A tensor, owned or borrowed: what it borrows from must live as long. */
class Tensor {
public:
    static Tensor own(HurrayTensor *tensor) { return Tensor(tensor, true); }
    static Tensor borrow(HurrayTensor *tensor) { return Tensor(tensor, false); }
    Tensor(Tensor &&other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)), owned_(other.owned_) {}
    Tensor &operator=(Tensor &&other) noexcept {
        std::swap(tensor_, other.tensor_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~Tensor() {
        if (owned_) hurray_tensor_destroy(&tensor_);
    }
    Descriptor descriptor() const {
        const HurrayDescriptor *descriptor = nullptr;
        check(hurray_tensor_descriptor(tensor_, &descriptor));
        return Descriptor(descriptor);
    }
    std::uint64_t buffer_count() const {
        std::uint64_t count = 0;
        check(hurray_buffer_list_len(buffers(), &count));
        return count;
    }
    Buffer buffer(std::uint64_t i) const {
        HurrayBuffer *buffer = nullptr;
        check(hurray_buffer_list_get(buffers(), i, &buffer));
        return Buffer(buffer);
    }
    /** All logical elements, decoded to float32, row-major. */
    std::vector<float> to_float32() const {
        auto error = sized<HurrayError>();
        std::uint64_t bytes = 0;
        check(hurray_dense_size(descriptor().get(), HURRAY_TYPE_FLOAT32, &bytes, &error), error);
        std::vector<float> values(static_cast<std::size_t>(bytes / sizeof(float)));
        check(hurray_tensor_dense(tensor_, HURRAY_TYPE_FLOAT32, values.data(), values.size() * sizeof(float), &error), error);
        return values;
    }
    HurrayTensor *get() const noexcept { return tensor_; }

private:
    Tensor(HurrayTensor *tensor, bool owned) : tensor_(tensor), owned_(owned) {}
    HurrayBufferList *buffers() const {
        HurrayBufferList *list = nullptr;
        check(hurray_tensor_buffers(tensor_, &list));
        return list;
    }
    HurrayTensor *tensor_;
    bool owned_;
};

/** What a load made, in file order. */
class TensorSet {
public:
    explicit TensorSet(HurrayTensorSet *set) : set_(set) {}
    std::uint64_t size() const {
        std::uint64_t count = 0;
        check(hurray_tensor_set_count(set_.get(), &count));
        return count;
    }
    std::string_view name(std::uint64_t i) const {
        const std::uint8_t *name = nullptr;
        std::size_t len = 0;
        check(hurray_tensor_set_name(set_.get(), i, &name, &len));
        return detail::view(name, len);
    }
    std::uint64_t find(std::string_view name) const {
        std::uint64_t i = 0;
        check(hurray_tensor_set_find(set_.get(), name.data(), name.size(), &i));
        return i;
    }
    Tensor tensor(std::uint64_t i) const {
        HurrayTensor *tensor = nullptr;
        check(hurray_tensor_set_get(set_.get(), i, &tensor));
        return Tensor::borrow(tensor);
    }
    Tensor operator[](std::string_view name) const { return tensor(find(name)); }
    Tensor take(std::uint64_t i) {
        HurrayTensor *tensor = nullptr;
        check(hurray_tensor_set_take(set_.get(), i, &tensor));
        return Tensor::own(tensor);
    }
    HurrayTensorSet *get() const noexcept { return set_.get(); }

private:
    detail::Owner<HurrayTensorSet, hurray_tensor_set_destroy> set_;
};

class Loader {
public:
    explicit Loader(const char *path, const HurrayLoaderOptions &options = loader_options()) {
        HurrayLoader *loader = nullptr;
        auto error = sized<HurrayError>();
        check(hurray_loader_open(path, &options, &loader, &error), error);
        loader_.reset(loader);
    }
    std::uint64_t size() const {
        std::uint64_t count = 0;
        check(hurray_loader_tensor_count(loader_.get(), &count));
        return count;
    }
    /** Borrowed until the next call. */
    HurrayTensorInfo info(std::uint64_t i) {
        auto info = sized<HurrayTensorInfo>();
        check(hurray_loader_tensor_info(loader_.get(), i, &info), last_error());
        return info;
    }
    std::uint64_t find(std::string_view name) const {
        std::uint64_t i = 0;
        check(hurray_loader_find(loader_.get(), name.data(), name.size(), &i), last_error());
        return i;
    }
    Loader &select(std::string_view glob) {
        check(hurray_loader_select_glob(loader_.get(), glob.data(), glob.size()), last_error());
        return *this;
    }
    TensorSet load() {
        HurrayTensorSet *set = nullptr;
        check(hurray_loader_load(loader_.get(), &set), last_error());
        return TensorSet(set);
    }
    /** From any thread, a signal handler too. */
    void cancel() noexcept { hurray_loader_cancel(loader_.get()); }
    HurrayLoadStats stats() const {
        auto stats = sized<HurrayLoadStats>();
        check(hurray_loader_stats(loader_.get(), &stats));
        return stats;
    }
    const HurrayError *last_error() const noexcept { return hurray_loader_last_error(loader_.get()); }
    HurrayLoader *get() const noexcept { return loader_.get(); }

private:
    detail::Owner<HurrayLoader, hurray_loader_destroy> loader_;
};

class FileReader {
public:
    explicit FileReader(Transport transport, const HurrayFileReaderOptions &options = sized<HurrayFileReaderOptions>()) {
        HurrayFileReader *reader = nullptr;
        auto error = sized<HurrayError>();
        check(hurray_file_reader_new_ex(transport.get(), &options, &reader, &error), error);
        transport.release();
        reader_.reset(reader);
    }
    std::uint64_t size() const {
        std::uint64_t count = 0;
        check(hurray_file_reader_tensor_count(reader_.get(), &count));
        return count;
    }
    std::string_view name(std::uint64_t i) const {
        const std::uint8_t *name = nullptr;
        std::size_t len = 0;
        check(hurray_file_reader_tensor_name(reader_.get(), i, &name, &len));
        return detail::view(name, len);
    }
    Tensor read(std::string_view name) {
        HurrayTensor *tensor = nullptr;
        check(hurray_file_reader_read_tensor(reader_.get(), name.data(), name.size(), &tensor), hurray_file_reader_last_error(reader_.get()));
        return Tensor::own(tensor);
    }
    HurrayFileReader *get() const noexcept { return reader_.get(); }

private:
    detail::Owner<HurrayFileReader, hurray_file_reader_destroy> reader_;
};

class FileWriter {
public:
    explicit FileWriter(Transport transport, const HurrayFileWriterOptions &options = sized<HurrayFileWriterOptions>()) {
        HurrayFileWriter *writer = nullptr;
        auto error = sized<HurrayError>();
        check(hurray_file_writer_new_ex(transport.get(), &options, &writer, &error), error);
        transport.release();
        writer_.reset(writer);
    }
    /** One slice per buffer; after an Error of SINK_CLOSED the file cannot be completed, after any other the call may be repeated. */
    void write(std::string_view name, const HurrayDescriptor *descriptor, const std::vector<HurrayIoSlice> &slices) {
        check(hurray_file_writer_write_tensor(writer_.get(), name.data(), name.size(), descriptor, slices.data(), slices.size()), last_error());
    }
    void finish(const std::vector<HurrayKvEntry> &kv = {}) { check(hurray_file_writer_finish(writer_.get(), kv.data(), kv.size()), last_error()); }
    const HurrayError *last_error() const noexcept { return hurray_file_writer_last_error(writer_.get()); }
    HurrayFileWriter *get() const noexcept { return writer_.get(); }

private:
    detail::Owner<HurrayFileWriter, hurray_file_writer_destroy> writer_;
};

} // namespace hurray

#endif

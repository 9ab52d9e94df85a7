/* The C++ header: owners release, errors are thrown with their record, a file written and read back is equal. */
#include "hurray.hpp"

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            std::exit(1);                                              \
        }                                                              \
    } while (0)

static void write_file(const char *path, const std::vector<float> &values) {
    auto spec = hurray::sized<HurrayDescriptorSpec>();
    std::uint64_t shape[2] = {2, values.size() / 2};
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    hurray::NewDescriptor descriptor(spec);
    hurray::FileWriter writer(hurray::Transport::create(path));
    writer.write("w", descriptor.get(), {{values.data(), values.size() * sizeof(float)}});
    HurrayKvEntry kv{};
    kv.key = "by";
    kv.key_len = 2;
    kv.value.kind = HURRAY_KV_STRING;
    kv.value.data = "test";
    kv.value.data_len = 4;
    writer.finish({kv});
}

static void a_file_written_and_read_back_is_equal(const char *path) {
    std::vector<float> values;
    for (int i = 0; i < 64; i++) values.push_back(static_cast<float>(i) / 4);
    write_file(path, values);
    hurray::FileReader reader(hurray::Transport::file(path));
    CHECK(reader.size() == 1 && reader.name(0) == "w");
    hurray::Tensor tensor = reader.read("w");
    CHECK(tensor.descriptor().shape() == (std::vector<std::uint64_t>{2, 32}));
    CHECK(tensor.to_float32() == values);
    CHECK(tensor.buffer(0).size() == 256 && reinterpret_cast<std::uintptr_t>(tensor.buffer(0).data()) % 64 == 0);
    hurray::Loader loader(path);
    hurray::TensorSet set = loader.select("*").load();
    CHECK(set.size() == 1 && set["w"].to_float32() == values);
    hurray::Tensor taken = set.take(0);
    std::thread([moved = std::move(taken)]() mutable { hurray::Tensor gone = std::move(moved); }).join();
}

static void errors_are_thrown_with_their_record(const char *path) {
    try {
        hurray::Loader loader("no such file");
        CHECK(false);
    } catch (const hurray::Error &error) {
        CHECK(error.code() == HURRAY_ERR_TRANSPORT && error.record().message[0] && std::strstr(error.what(), "HURRAY_ERR_TRANSPORT"));
    }
    hurray::FileReader reader(hurray::Transport::file(path));
    try {
        reader.read("x");
        CHECK(false);
    } catch (const hurray::Error &error) {
        CHECK(error.code() == HURRAY_ERR_NOT_FOUND);
    }
    CHECK(reader.read("w").buffer_count() == 1); /* the reader stays usable */
}

static void mapped_tensors_outlive_everything(const char *path) {
    hurray::Transport source = hurray::Transport::mapped(path);
    hurray::Destination destination = hurray::Destination::in_place(source);
    auto options = hurray::sized<HurrayFileReaderOptions>();
    options.destination = destination.get();
    hurray::Tensor tensor = hurray::FileReader(std::move(source), options).read("w");
    CHECK(tensor.buffer(0).flags() & HURRAY_BUFFER_IN_PLACE);
    CHECK(tensor.buffer(0).as<const float>()[63] == 15.75f);
}

int main() {
    const char *folder = std::getenv("TMPDIR");
    std::string path = std::string(folder ? folder : "/tmp") + "/hurray_hpp_" + std::to_string(static_cast<long long>(std::hash<std::thread::id>()(std::this_thread::get_id()) & 0xFFFFFF)) + ".hrry";
    a_file_written_and_read_back_is_equal(path.c_str());
    errors_are_thrown_with_their_record(path.c_str());
    mapped_tensors_outlive_everything(path.c_str());
    std::remove(path.c_str());
    std::puts("3 passed, 0 failed");
    return 0;
}

/* Visibility of public symbols and the language linkage of public headers. */
#ifndef HURRAY_EXPORT_H
#define HURRAY_EXPORT_H

#if defined(__GNUC__)
#define HURRAY_API __attribute__((visibility("default")))
#else
#define HURRAY_API
#endif

#ifdef __cplusplus
#define HURRAY_BEGIN extern "C" {
#define HURRAY_END }
#else
#define HURRAY_BEGIN
#define HURRAY_END
#endif

#endif

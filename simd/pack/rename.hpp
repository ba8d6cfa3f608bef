// Renames of folders that replace nothing, or exchange two folders, in one step.

#pragma once

namespace swsearch::pack {

// Renames a file or folder if the new name does not exist. Returns 0 or an errno; ENOSYS or EINVAL if the system or its
// file system cannot do this.
int rename_without_replacing(const char* from, const char* to);

// Exchanges the names of two files or folders. Returns as above.
int exchange(const char* one, const char* other);

}  // namespace swsearch::pack

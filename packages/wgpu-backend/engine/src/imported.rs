//! Memory of the host that the GPU reads and writes in place, which `wgpu` has no call for.

#[cfg(not(any(target_os = "macos", windows)))]
pub use vulkan::{buffer, open};

#[cfg(any(target_os = "macos", windows))]
pub use elsewhere::{buffer, open};

#[cfg(not(any(target_os = "macos", windows)))]
mod vulkan {
    use std::ptr;

    use ash::{ext, vk};
    use wgpu::hal::api::Vulkan;

    const KIND: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

    /// Open a device, with the extension that imports memory where the driver has it.
    pub fn open(
        adapter: &wgpu::Adapter,
        descriptor: &wgpu::DeviceDescriptor<'_>,
    ) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
        let (features, limits, hints) =
            (descriptor.required_features, &descriptor.required_limits, &descriptor.memory_hints);
        // SAFETY: nothing of the adapter is destroyed here.
        let hal = unsafe { adapter.as_hal::<Vulkan>() };
        let able = |hal: &&_| has(hal, ext::external_memory_host::NAME);
        if let Some(hal) = hal.as_deref().filter(able) {
            let more: Box<wgpu::hal::vulkan::CreateDeviceCallback<'_>> =
                Box::new(|given| given.extensions.push(ext::external_memory_host::NAME));
            // SAFETY: the adapter has the extension, which needs no feature and takes none away.
            let opened = unsafe { hal.open_with_callback(features, limits, hints, Some(more)) };
            if let Ok(opened) = opened {
                // SAFETY: it was opened by this adapter with these features.
                return unsafe { adapter.create_device_from_hal(opened, descriptor) };
            }
        }
        pollster::block_on(adapter.request_device(descriptor))
    }

    fn has(adapter: &wgpu::hal::vulkan::Adapter, extension: &std::ffi::CStr) -> bool {
        adapter.physical_device_capabilities().supports_extension(extension)
    }

    /// Memory of the host, whole pages from an address on, as a buffer; None where that cannot be.
    pub fn buffer(
        device: &wgpu::Device,
        address: usize,
        nbytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Option<wgpu::Buffer> {
        // SAFETY: nothing of the device is destroyed here.
        let hal = unsafe { device.as_hal::<Vulkan>() }?;
        if !hal.enabled_device_extensions().contains(&ext::external_memory_host::NAME) {
            return None;
        }
        // SAFETY: the buffer and its memory are of this device; whoever gives the address keeps the
        // pages until the process ends.
        let (raw, memory) = unsafe { bound(&hal, address, nbytes) }.ok()?;
        // SAFETY: both were made for this alone, and the memory holds the whole buffer.
        let whole = unsafe { wgpu::hal::vulkan::Buffer::from_raw_managed(raw, memory, 0, nbytes) };
        let descriptor = wgpu::BufferDescriptor { label: None, size: nbytes, usage, mapped_at_creation: false };
        // SAFETY: it was made by this device, with the usages below, and its bytes are initialized.
        Some(unsafe { device.create_buffer_from_hal::<Vulkan>(whole, &descriptor) })
    }

    /// A buffer over pages of the host, and the memory that it is bound to.
    ///
    /// # Safety
    ///
    /// The extension is enabled, and the pages stay mapped while the memory lives.
    unsafe fn bound(
        hal: &wgpu::hal::vulkan::Device,
        address: usize,
        nbytes: u64,
    ) -> Result<(vk::Buffer, vk::DeviceMemory), vk::Result> {
        let (device, shared) = (hal.raw_device(), hal.shared_instance());
        // SAFETY: the caller says that the extension is enabled.
        let apart = unsafe { alignment(hal) }.ok_or(vk::Result::ERROR_FEATURE_NOT_PRESENT)?;
        if !(address as u64).is_multiple_of(apart) || !nbytes.is_multiple_of(apart) {
            return Err(vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        let host = ext::external_memory_host::Device::new(shared.raw_instance(), device);
        let pages = ptr::with_exposed_provenance_mut::<std::ffi::c_void>(address);
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(KIND);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(nbytes).usage(usage).push_next(&mut external);
        // SAFETY: what the caller says of the extension and the pages; what is made here is used and
        // destroyed here, or handed out whole.
        unsafe {
            let mut taken = vk::MemoryHostPointerPropertiesEXT::default();
            (host.fp().get_memory_host_pointer_properties_ext)(device.handle(), KIND, pages, &raw mut taken)
                .result()?;
            let kinds = shared.raw_instance().get_physical_device_memory_properties(hal.raw_physical_device());
            let buffer = device.create_buffer(&info, None)?;
            let needs = device.get_buffer_memory_requirements(buffer);
            let both = taken.memory_type_bits & needs.memory_type_bits;
            let made = kind_of(&kinds, both).filter(|_| needs.size <= nbytes).map_or(
                Err(vk::Result::ERROR_FEATURE_NOT_PRESENT),
                |kind| {
                    let mut import =
                        vk::ImportMemoryHostPointerInfoEXT::default().handle_type(KIND).host_pointer(pages);
                    let info = vk::MemoryAllocateInfo::default()
                        .allocation_size(nbytes)
                        .memory_type_index(kind)
                        .push_next(&mut import);
                    device.allocate_memory(&info, None)
                },
            );
            let memory = made.inspect_err(|_| device.destroy_buffer(buffer, None))?;
            device.bind_buffer_memory(buffer, memory, 0).inspect_err(|_| {
                device.destroy_buffer(buffer, None);
                device.free_memory(memory, None);
            })?;
            Ok((buffer, memory))
        }
    }

    /// What addresses and sizes are multiples of; None where Vulkan is too old to be asked.
    ///
    /// # Safety
    ///
    /// The extension is enabled.
    unsafe fn alignment(hal: &wgpu::hal::vulkan::Device) -> Option<u64> {
        let shared = hal.shared_instance();
        if shared.instance_api_version() < vk::API_VERSION_1_1 {
            return None;
        }
        let mut told = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut told);
        // SAFETY: the instance has the call, and the device the extension that answers.
        unsafe { shared.raw_instance().get_physical_device_properties2(hal.raw_physical_device(), &mut all) };
        Some(told.min_imported_host_pointer_alignment.max(1))
    }

    /// The first of these kinds of memory whose writes the host sees without being told.
    fn kind_of(kinds: &vk::PhysicalDeviceMemoryProperties, among: u32) -> Option<u32> {
        let coherent =
            |at: &u32| kinds.memory_types[*at as usize].property_flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        (0..kinds.memory_type_count).filter(|at| among >> at & 1 == 1).find(coherent)
    }
}

#[cfg(any(target_os = "macos", windows))]
mod elsewhere {
    pub fn open(
        adapter: &wgpu::Adapter,
        descriptor: &wgpu::DeviceDescriptor<'_>,
    ) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
        pollster::block_on(adapter.request_device(descriptor))
    }

    pub fn buffer(_: &wgpu::Device, _: usize, _: u64, _: wgpu::BufferUsages) -> Option<wgpu::Buffer> {
        None
    }
}

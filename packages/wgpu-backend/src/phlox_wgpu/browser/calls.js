// What engine.py calls, so that a batch of commands crosses from Python to JavaScript once.
// The value of this text is an object of functions: `adapters`, and `open`, which gives a device.
(() => {
  const USAGE = { uniform: 0x40 | 0x08, storage: 0x80 | 0x04 | 0x08, staging: 0x01 | 0x08 };
  const KEPT_BYTES = 1 << 26;

  // Kernels ask for the numbers of a subgroup, which the feature alone does not give.
  const subgroups = (adapter) =>
    adapter.features.has("subgroups") && !!navigator.gpu.wgslLanguageFeatures?.has("subgroup_id");

  function limitsOf(held) {
    const found = {};
    for (const name in held.limits) {
      const value = held.limits[name];
      if (typeof value === "number") found[name] = value;
    }
    return found;
  }

  async function adapters() {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return [];
    const { vendor, architecture, device, description } = adapter.info;
    const software =
      !!(adapter.info.isFallbackAdapter ?? adapter.isFallbackAdapter) || architecture === "swiftshader";
    const features = [];
    if (adapter.features.has("shader-f16")) features.push("shader-f16");
    if (subgroups(adapter)) features.push("subgroup");
    const name = description || device || [vendor, architecture].filter(Boolean).join(" ");
    return [{ adapter, name: name || "GPU", vendor, software, features, limits: limitsOf(adapter) }];
  }

  class Device {
    constructor(gpu) {
      this.gpu = gpu;
      this.error = "";
      this.staging = []; // buffers that reads landed in, oldest first
      this.stagingBytes = 0;
      gpu.onuncapturederror = ({ error }) => {
        const short = error instanceof GPUOutOfMemoryError;
        this.error ||= short ? `not enough memory left: ${error.message}` : error.message;
      };
      gpu.lost.then(({ message }) => {
        this.error = `the device is lost: ${message}`;
      });
    }

    // What went wrong since the last call; a lost device stays lost.
    told() {
      const error = this.error;
      if (!error.includes("is lost")) this.error = "";
      return error;
    }

    limits() {
      return limitsOf(this.gpu);
    }

    buffer(size, usage) {
      return this.gpu.createBuffer({ size, usage: USAGE[usage] });
    }

    write(buffer, data) {
      this.gpu.queue.writeBuffer(buffer, 0, data);
    }

    layout(kinds) {
      const entries = kinds.map((type, binding) => {
        const buffer = { type, hasDynamicOffset: type === "uniform" };
        return { binding, visibility: GPUShaderStage.COMPUTE, buffer };
      });
      const group = this.gpu.createBindGroupLayout({ entries });
      return { group, whole: this.gpu.createPipelineLayout({ bindGroupLayouts: [group] }) };
    }

    async module(label, code) {
      this.gpu.pushErrorScope("validation");
      const module = this.gpu.createShaderModule({ label, code });
      const invalid = await this.gpu.popErrorScope();
      if (invalid) throw new Error(invalid.message);
      return module;
    }

    async pipeline(label, code, layout) {
      const compute = { module: await this.module(label, code), entryPoint: "main" };
      return await this.gpu.createComputePipelineAsync({ label, layout: layout.whole, compute });
    }

    // `bound`: a buffer and its bytes, for each binding.
    bind(layout, bound) {
      const entries = [];
      for (let at = 0; at < bound.length; at += 2) {
        entries.push({ binding: at / 2, resource: { buffer: bound[at], size: bound[at + 1] } });
      }
      return this.gpu.createBindGroup({ layout: layout.group, entries });
    }

    // `work`: pipeline, bind group, offset of its numbers or -1, x, y, z, for each dispatch.
    // `copies`: source, its offset, destination, its offset, bytes.
    submit(work, copies) {
      const encoder = this.gpu.createCommandEncoder();
      if (work.length) {
        const pass = encoder.beginComputePass();
        let current = null;
        for (let at = 0; at < work.length; at += 6) {
          if (work[at] !== current) pass.setPipeline((current = work[at]));
          pass.setBindGroup(0, work[at + 1], work[at + 2] < 0 ? [] : [work[at + 2]]);
          pass.dispatchWorkgroups(work[at + 3], work[at + 4], work[at + 5]);
        }
        pass.end();
      }
      for (let at = 0; at < copies.length; at += 5) {
        encoder.copyBufferToBuffer(...copies.slice(at, at + 5));
      }
      this.gpu.queue.submit([encoder.finish()]);
      return this.told();
    }

    landing(size) {
      const at = this.staging.findIndex((buffer) => buffer.size === size);
      if (at < 0) return this.buffer(size, "staging");
      this.stagingBytes -= size;
      return this.staging.splice(at, 1)[0];
    }

    // A promise of the first bytes of a buffer that `landing` gave, which is kept for later reads.
    async landed(buffer, nbytes) {
      try {
        await buffer.mapAsync(GPUMapMode.READ, 0, nbytes);
      } catch (error) {
        await Promise.race([this.gpu.lost, new Promise((resolve) => setTimeout(resolve, 100))]);
        throw new Error(this.told() || error.message); // that the device is lost comes afterwards
      }
      const data = new Uint8Array(buffer.getMappedRange(0, nbytes)).slice();
      buffer.unmap();
      this.staging.push(buffer);
      this.stagingBytes += buffer.size;
      this.trim(KEPT_BYTES);
      return data;
    }

    trim(most) {
      while (this.stagingBytes > most) {
        const oldest = this.staging.shift();
        this.stagingBytes -= oldest.size;
        oldest.destroy();
      }
    }

    done() {
      return this.gpu.queue.onSubmittedWorkDone();
    }
  }

  async function open(adapter) {
    const requiredFeatures = ["shader-f16"].filter((name) => adapter.features.has(name));
    if (subgroups(adapter)) requiredFeatures.push("subgroups");
    const requiredLimits = limitsOf(adapter);
    return new Device(await adapter.requestDevice({ requiredFeatures, requiredLimits }));
  }

  return { adapters, open };
})()

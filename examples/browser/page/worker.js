// Python beside the page: it answers messages {id, call, values} with {id, value} or {id, error},
// and sends {event, ...} on its own.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const send = (event, more) => postMessage({ event, ...more });

async function start() {
  const began = performance.now();
  send("state", { text: "loading Python and NumPy" });
  const python = await loadPyodide();
  await python.loadPackage("numpy", { messageCallback: () => {} });
  send("state", { text: "loading phlox" });
  const [archive, digits, program] = await Promise.all(
    ["phlox.zip", "digits.npz", "digits.py"].map(async (name) => {
      const answer = await fetch(new URL(name, location));
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      return new Uint8Array(await answer.arrayBuffer());
    }),
  );
  python.unpackArchive(archive, "zip");
  python.FS.writeFile("digits.npz", digits);
  python.FS.writeFile("digits.py", program);
  await python.runPythonAsync("import digits");
  send("state", { text: "", seconds: (performance.now() - began) / 1000 });
  return python;
}

const started = start();
let session = null;

// Calls that may wait for the GPU, which suspends Python: one after another.
const calls = {
  async devices(python) {
    const found = await python.runPythonAsync("digits.devices()");
    return found.toJs({ dict_converter: Object.fromEntries });
  },
  async open(python, device) {
    python.globals.set("device", device);
    const opened = await python.runPythonAsync("digits.Session(device)");
    session?.destroy();
    session = opened;
  },
  async train(_, steps) {
    return (await session.train.callPromising(steps)).toJs();
  },
  accuracy: () => session.accuracy.callPromising(),
  async draw(_, pixels) {
    return (await session.drawn.callPromising(pixels)).toJs();
  },
  async sample() {
    const [pixels, digit] = (await session.sample.callPromising()).toJs();
    return { pixels, digit };
  },
  async save() {
    return (await session.save.callPromising()).toJs();
  },
  async load(python, data) {
    python.FS.writeFile("loaded.mpk", data);
    await session.load.callPromising("loaded.mpk");
    return await session.accuracy.callPromising();
  },
};

let last = started.catch(() => {});
onmessage = ({ data: { id, call, values } }) => {
  const job = async () => {
    try {
      postMessage({ id, value: await calls[call](await started, ...values) });
    } catch (error) {
      postMessage({ id, error: String(error.message ?? error).trim() });
    }
  };
  last = last.then(job);
};

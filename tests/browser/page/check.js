// Runs check.py in Python and sends what it tells.
import { loadPyodide } from "./pyodide/pyodide.mjs";

try {
  const python = await loadPyodide();
  await python.loadPackage("numpy", { messageCallback: () => {} });
  const [archive, program] = await Promise.all(
    ["phlox.zip", "check.py"].map(async (name) =>
      new Uint8Array(await (await fetch(new URL(name, location))).arrayBuffer()),
    ),
  );
  python.unpackArchive(archive, "zip");
  python.FS.writeFile("check.py", program);
  python.globals.set("part", new URLSearchParams(location.search).get("part"));
  python.globals.set("told", (text) => postMessage(JSON.parse(text)));
  try {
    python.runPython("import phlox as px\npx.Wgpu.describe()"); // where it cannot wait
    throw new Error("Wgpu did not say that it cannot wait");
  } catch (error) {
    if (!error.message.includes("runPythonAsync")) throw error;
  }
  await python.runPythonAsync("import check");
  if (python.globals.get("part") === "wgpu") {
    const calls = [0, 1].map((place) => python.runPythonAsync(`check.one_of_two(${place})`));
    await Promise.all(calls);
    postMessage({ event: "two calls at once" });
  }
  await python.runPythonAsync("check.run(part, told)");
  postMessage({ event: "end" });
} catch (error) {
  postMessage({ event: "failed", error: String(error.message ?? error) });
}

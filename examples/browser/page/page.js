// The page: buttons, a curve, a place to draw. Python runs in worker.js.
const worker = new Worker("worker.js", { type: "module" });
const at = (id) => document.getElementById(id);
const waiting = new Map();
let count = 0;

const ask = (call, ...values) =>
  new Promise((resolve, reject) => {
    waiting.set(++count, { resolve, reject });
    worker.postMessage({ id: count, call, values });
  });

const settings = new URLSearchParams(location.search);
// With #check in its address the page does all by itself, and tells the server what it saw.
const checking = location.hash === "#check";
let told = Promise.resolve(); // one after another: the end is told at the end
const tell = (what) => {
  if (checking) told = told.then(() => fetch("told", { method: "POST", body: JSON.stringify(what) }));
};

worker.onmessage = ({ data }) => {
  if (data.event) return events[data.event](data);
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.error) reject(new Error(data.error));
  else resolve(data.value);
};
worker.onerror = (event) => failed(new Error(event.message ?? "the worker did not start"));

const events = {
  state({ text, seconds }) {
    state(text);
    if (seconds) tell({ event: "ready", seconds });
  },
};

function state(text, kind = "") {
  at("state").textContent = text;
  at("state").className = kind;
}

function failed(error) {
  state(error.message.split("\n").slice(-2).join(" "), "error");
  console.error(error);
  tell({ event: "failed", error: error.message });
}

const doing = (id, work) => {
  at(id).onclick = async () => {
    at(id).disabled = true;
    if (at("state").className) state(""); // an error of before
    try {
      await work();
    } catch (error) {
      failed(error);
    }
    at(id).disabled = false;
  };
};

// The curve

const curve = [];

function plot() {
  const canvas = at("curve");
  const ink = canvas.getContext("2d");
  const { width, height } = canvas;
  const most = Math.max(2.4, ...curve.map(([, loss]) => loss));
  const last = Math.max(100, curve.at(-1)?.[0] ?? 0);
  const x = (step) => 36 + ((width - 46) * step) / last;
  const y = (loss) => height - 22 - ((height - 32) * loss) / most;
  ink.clearRect(0, 0, width, height);
  ink.font = "12px system-ui";
  ink.fillStyle = "#6b7280";
  ink.strokeStyle = "#e5e7eb";
  for (const loss of [0, 0.5, 1, 1.5, 2]) {
    ink.fillText(loss.toFixed(1), 8, y(loss) + 4);
    ink.beginPath();
    ink.moveTo(x(0), y(loss));
    ink.lineTo(x(last), y(loss));
    ink.stroke();
  }
  ink.fillText(`${last} steps`, x(last) - 60, height - 6);
  ink.strokeStyle = "#7c3aed";
  ink.lineWidth = 2;
  ink.beginPath();
  curve.forEach(([step, loss], i) => ink[i ? "lineTo" : "moveTo"](x(step), y(loss)));
  ink.stroke();
  ink.lineWidth = 1;
}

// Drawing

const pad = at("pad");
const ink = pad.getContext("2d", { willReadFrequently: true });
let drawing = false;
let ready = false; // whether there is a network to ask

function clear() {
  ink.fillStyle = "black";
  ink.fillRect(0, 0, pad.width, pad.height);
  at("bars").replaceChildren();
}

// 28 by 28 pixels, with the digit as large and in the middle as in the data.
function pixels() {
  const { data } = ink.getImageData(0, 0, pad.width, pad.height);
  let [left, right, top, bottom, mass, sumX, sumY] = [pad.width, 0, pad.height, 0, 0, 0, 0];
  for (let y = 0; y < pad.height; y++) {
    for (let x = 0; x < pad.width; x++) {
      const value = data[4 * (y * pad.width + x)];
      if (value < 32) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      [mass, sumX, sumY] = [mass + value, sumX + value * x, sumY + value * y];
    }
  }
  const small = new OffscreenCanvas(28, 28).getContext("2d");
  small.fillRect(0, 0, 28, 28);
  if (mass) {
    const scale = 20 / Math.max(right - left + 1, bottom - top + 1);
    small.imageSmoothingQuality = "high";
    small.setTransform(scale, 0, 0, scale, 14 - (scale * sumX) / mass, 14 - (scale * sumY) / mass);
    small.drawImage(pad, 0, 0);
  }
  const found = small.getImageData(0, 0, 28, 28).data;
  return Uint8Array.from({ length: 784 }, (_, i) => found[4 * i]);
}

function show(shares) {
  const best = shares.indexOf(Math.max(...shares));
  const bars = shares.map((share, digit) => {
    const bar = document.createElement("div");
    bar.className = digit === best ? "bar best" : "bar";
    bar.innerHTML = `<b>${digit}</b><span style="width:${Math.round(share * 140)}px"></span>${Math.round(share * 100)} %`;
    return bar;
  });
  at("bars").replaceChildren(...bars);
  return best;
}

pad.onpointerdown = (event) => {
  if (!ready) return;
  drawing = true;
  pad.setPointerCapture(event.pointerId);
  ink.beginPath();
  ink.moveTo(event.offsetX, event.offsetY);
};
pad.onpointermove = (event) => {
  if (!drawing) return;
  ink.strokeStyle = "white";
  ink.lineWidth = 18;
  ink.lineCap = ink.lineJoin = "round";
  ink.lineTo(event.offsetX, event.offsetY);
  ink.stroke();
};
pad.onpointercancel = () => (drawing = false);
pad.onpointerup = async () => {
  if (!drawing) return;
  drawing = false;
  show(await ask("draw", pixels()).catch((error) => (failed(error), [])));
};

doing("clear", async () => clear());
doing("sample", async () => {
  const { pixels: found, digit } = await ask("sample");
  const image = new ImageData(28, 28);
  found.forEach((value, i) => image.data.set([value, value, value, 255], 4 * i));
  const small = new OffscreenCanvas(28, 28);
  small.getContext("2d").putImageData(image, 0, 0);
  clear();
  ink.drawImage(small, 0, 0, pad.width, pad.height);
  const best = show(await ask("draw", found));
  state(`it is a ${digit}`);
  tell({ event: "sample", digit, best });
});

// Training, records, devices

const known = (accuracy) => {
  at("accuracy").textContent = `${(100 * accuracy).toFixed(1)} % of 1,000 unseen digits are right`;
};

const EVERY = 10; // steps between two numbers; what else is asked has its turn then
let stopped = false;
let networks = 0; // opened so far; what an earlier one answers is not shown

async function train(steps) {
  const own = networks;
  stopped = false;
  at("train").disabled = !(at("stop").disabled = false);
  try {
    await learn(own, steps);
  } finally {
    at("train").disabled = !(at("stop").disabled = true);
  }
  const accuracy = own === networks && (await ask("accuracy"));
  if (own === networks) known(accuracy);
  return accuracy;
}

async function learn(own, steps) {
  for (let left = steps; left > 0 && !stopped; left -= EVERY) {
    const [step, loss, rate] = await ask("train", EVERY);
    if (own !== networks) return;
    curve.push([step, loss]);
    at("numbers").textContent = `step ${step}, loss ${loss.toFixed(3)}, ${rate.toFixed(1)} steps a second`;
    plot();
    tell({ event: "step", step, loss, rate });
  }
}

doing("train", () => train(2000));
at("stop").onclick = () => (stopped = true);
doing("save", async () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await ask("save")]));
  link.download = "digits.mpk";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the download reads it after the click
});
doing("load", async () => at("file").click());
at("file").onchange = async () => {
  const [file] = at("file").files;
  if (!file) return;
  try {
    known(await ask("load", new Uint8Array(await file.arrayBuffer())));
  } catch (error) {
    failed(error);
  }
  at("file").value = "";
};

async function open(device) {
  stopped = true;
  networks += 1;
  curve.length = 0;
  at("numbers").textContent = at("accuracy").textContent = "";
  plot();
  await ask("open", device);
}

async function begin() {
  clear();
  plot();
  const devices = await ask("devices");
  for (const { name, words } of devices) at("device").append(new Option(words, name));
  at("device").onchange = () => {
    state("");
    open(at("device").value).catch(failed);
  };
  const problem = devices.find((device) => device.problem)?.problem;
  if (problem) state(`no GPU: ${problem}`);
  // The best one, or that which the address asks for: ?device=numpy
  at("device").value = settings.get("device") ?? devices[0].name;
  await open(at("device").value);
  tell({ event: "devices", names: devices.map(({ name }) => name).join(" "), runs: at("device").value });
  for (const id of ["train", "save", "load", "sample", "clear", "device"]) at(id).disabled = false;
  ready = true;
  if (checking) await check();
}

async function check() {
  tell({ event: "trained", accuracy: await train(Number(settings.get("steps") ?? 200)) });
  at("sample").click();
  const record = await ask("save");
  await open(at("device").value);
  const before = await ask("load", record.slice());
  known(before);
  tell({ event: "loaded", bytes: record.length, accuracy: before });
  if (at("device").value !== "wgpu") await another(); // ten steps take a minute on a GPU that is played
  tell({ event: "end" });
}

// A device chosen while a network learns begins anew, and shows nothing of the old one.
async function another() {
  const learned = train(1000);
  await open(at("device").value);
  await learned;
  const shown = at("numbers").textContent + at("accuracy").textContent;
  if (shown || curve.length || !at("stop").disabled) throw new Error(`of an old network: ${shown}`);
  tell({ event: "another network" });
}

begin().catch(failed);

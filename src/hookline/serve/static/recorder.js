// Recording a question with the microphone.

const KINDS = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];
const LONGEST = 300; // seconds

export class Recorder {
  /** `on` has `started()`, `tick(seconds)`, `stopped()`, `recorded(part)` and `failed(message)`. */
  constructor(on) {
    this.on = on;
  }

  get isRecording() {
    return this.recorder?.state === "recording";
  }

  async start() {
    if (!navigator.mediaDevices || !window.MediaRecorder) {
      this.on.failed(
        "Recording needs a secure page: open it through https, or on the machine itself as localhost.",
      );
      return;
    }
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (problem) {
      this.on.failed(
        problem.name === "NotAllowedError"
          ? "The browser does not allow the microphone for this page."
          : `The microphone cannot be used: ${problem.message || problem.name}`,
      );
      return;
    }
    const mimeType = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
    const pieces = [];
    const recorder = (this.recorder = new MediaRecorder(stream, mimeType ? { mimeType } : {}));
    this.keep = true;
    recorder.ondataavailable = ({ data }) => data.size && pieces.push(data);
    recorder.onstop = async () => {
      clearInterval(this.clock);
      for (const track of stream.getTracks()) track.stop();
      this.on.stopped();
      if (!this.keep) return;
      const type = recorder.mimeType.split(";")[0] || "audio/webm";
      if (pieces.length)
        this.on.recorded({ type: "audio", mime_type: type, data: await base64(new Blob(pieces)) });
      else this.on.failed("Nothing was recorded.");
    };
    recorder.start();
    let seconds = 0;
    this.clock = setInterval(() => {
      this.on.tick((seconds += 1));
      if (seconds >= LONGEST) this.stop();
    }, 1000);
    this.on.started();
  }

  /** End the recording; with `keep` off it is thrown away. */
  stop(keep = true) {
    this.keep = keep;
    if (this.isRecording) this.recorder.stop();
  }
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

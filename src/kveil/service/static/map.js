// Where a person's point is on the page: a mark on a circle, and numbers that can be typed. It is in this page's memory alone.
// @ts-check

const STEPS = /** @type {Record<string, [number, number]>} */ ({
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
});
const STEP = 0.01; // of the radius; with Shift ten times as much

export class Place {
  /** @type {number[]} */
  #center;
  /** @type {number} */
  #radius;

  /**
   * @param {number[]} center of the public area
   * @param {number} radius
   */
  constructor(center, radius) {
    this.#center = center;
    this.#radius = radius;
    this.point = [...center];
    this.isSet = false;
    this.inputs = center.map((_, i) => this.#input(i));
    if (center.length === 2) this.#watchMap();
    else for (const id of ["map", "how"]) part(id).toggleAttribute("hidden", true);
    this.#show();
  }

  /** @param {number} i */
  #input(i) {
    const input = Object.assign(document.createElement("input"), { id: `x${i}`, inputMode: "decimal", autocomplete: "off" });
    const label = document.createElement("label");
    label.append(`Number ${i + 1}`, input);
    part("numbers").append(label);
    input.addEventListener("input", () => {
      const typed = Number(input.value.trim().replace(",", "."));
      const isNumber = input.value.trim() !== "" && Number.isFinite(typed);
      input.setAttribute("aria-invalid", String(!isNumber));
      if (isNumber) this.#set(this.point.map((x, j) => (j === i ? typed : x)));
    });
    return input;
  }

  #watchMap() {
    const map = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (part("map")));
    map.addEventListener("pointerdown", (event) => {
      map.setPointerCapture(event.pointerId);
      this.#touch(map, event);
    });
    map.addEventListener("pointermove", (event) => {
      if (map.hasPointerCapture(event.pointerId)) this.#touch(map, event);
    });
    map.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      const size = STEP * this.#radius * (event.shiftKey ? 10 : 1);
      this.#set(this.point.map((x, i) => x + step[i] * size));
    });
  }

  /**
   * @param {SVGSVGElement} map
   * @param {PointerEvent} event
   */
  #touch(map, event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM()?.inverse());
    this.#set([this.#center[0] + this.#radius * at.x, this.#center[1] - this.#radius * at.y]);
  }

  /** @param {number[]} point */
  #set(point) {
    this.point = point;
    this.isSet = true;
    this.#show();
  }

  #show() {
    const at = this.point.map((x, i) => (x - this.#center[i]) / this.#radius);
    const length = Math.hypot(...at);
    const [x, y] = at.map((v) => v / Math.max(length, 1)); // the mark stays where the point counts
    part("mark").setAttribute("transform", `translate(${x} ${-(y ?? 0)})`);
    this.inputs.forEach((input, i) => {
      if (document.activeElement !== input) input.value = short(this.point[i]);
    });
    const where = this.isSet ? `Your mark is at ${this.point.map(short).join(" and ")}.` : "The mark is in the middle. Move it to your place.";
    part("said").textContent = where + (length > 1 ? " That is outside the area and counts as its edge." : "");
  }
}

/** @param {string} id */
export function part(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** @param {number} x */
function short(x) {
  return String(Number(x.toPrecision(6)));
}

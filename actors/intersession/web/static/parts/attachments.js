// The files of a message: a picture as such, and of each a link that saves it.
import { html, signal, view } from '../base/drawing.js';
import { addressOf, bytesAt } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { taken } from './downloads.js';
import { Icon } from './icons.js';

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MOST = 1024; // a picture is kept no larger than that, whatever its file says

/** @param {string} url @param {AbortSignal} stop */
async function drawable(url, stop) {
  const answer = await bytesAt(url, stop);
  try {
    return { picture: await createImageBitmap(await answer.blob()) };
  } catch (error) {
    if (stop.aborted) throw error;
    throw new Error('This is no picture that the browser can show.');
  }
}

// An <img> can't send the page's half of the login, and the policy of the pages has no other source of pictures.
/** @param {HTMLCanvasElement | null} canvas @param {ImageBitmap} picture */
function draw(canvas, picture) {
  if (!canvas) return;
  const scale = Math.min(1, MOST / Math.max(picture.width, picture.height));
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext('2d')?.drawImage(picture, 0, 0, canvas.width, canvas.height);
}

// Asked for once somebody can see it: a transcript may have many.
/** @type {View<{ name: string, url: string }>} */
const Picture = view(({ name, url }, self) => {
  const near = self.once(() => signal(false));
  /** @param {HTMLElement | null} box */
  const watch = box => {
    if (!box || near.peek()) return;
    const watching = new IntersectionObserver(([one]) => {
      if (!one.isIntersecting) return;
      watching.disconnect();
      near.value = true;
    });
    watching.observe(box);
    self.onEnd(() => watching.disconnect());
  };
  const found = near.value ? loaded(self, 'picture', url, stop => drawable(url, stop)) : null;
  return html`
    <div class="picture" ref=${watch}>
      ${!found
        ? null
        : found.error
          ? html`<p class="muted">${found.error.message}</p>`
          : html`
              <canvas
                role="img"
                aria-label=${name}
                ref=${(/** @type {HTMLCanvasElement | null} */ canvas) => draw(canvas, found.picture)}></canvas>
            `}
    </div>
  `;
});

/** @param {number} bytes */
const sized = bytes => (bytes < 1024 ? `${bytes} bytes` : `${Math.ceil(bytes / 1024).toLocaleString('en-GB')} KiB`);
/** @param {Message["content"]} content */
export const attachmentsIn = content =>
  Array.isArray(content) ? content.filter(block => block.type === 'file' && block.sha256) : [];
/** @param {{ content: Message["content"], owner: string }} given */
export const Attachments = ({ content, owner }) =>
  attachmentsIn(content).map(file => {
    const { sha256 = '', name = '', size = 0, mimeType: kind = '' } = file;
    const url = addressOf({ session: owner, file: sha256 }, 'attachment');
    return html`
      ${PICTURES.has(kind) ? html`<${Picture} name=${name} url=${url} />` : null}
      <p>
        <a
          class="chip"
          href=${url}
          title=${`Save ${name}`}
          onClick=${(/** @type {Happening} */ event) => taken(event, name, name)}>
          <${Icon} name="down" />${name}
        </a>
        <span class="muted"> ${kind}, ${sized(size)}</span>
      </p>
    `;
  });

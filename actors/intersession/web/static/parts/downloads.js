// A link whose address a browser saves.
import { download } from '../asking/api.js';
import { say } from './window.js';

// The address alone gets nothing: the page's half of the login has to go with it.
/** @param {Happening} event @param {string} what @param {string} [name] */
export async function taken(event, what, name) {
  event.preventDefault();
  say(`${what} is being downloaded`);
  try {
    await download(event.currentTarget.href, name);
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
}
